"""The identity headers on the whole way: from the credential of a request to the other loop."""

import httpx
import pytest

from tests.other_users import HEADER, Visitors, share
from trunkline.contracts.gateway.access import Identity
from trunkline.testing.platform import platform
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio


async def test_PA_F18_a_collaborator_is_not_the_owner_to_another_loop() -> None:
    """A loop that answers Anna is told so, and that her turn has the memory of its block only. It is told that the
    owner's turn has everything."""
    async with ScriptedProvider().serving() as provider:
        config = {"runtime.provider_adapter": "engine", "adapters.engine.url": provider.address}
        async with (
            platform(plugins=[Visitors(Identity(id="anna"))], config=config) as running,
            httpx.AsyncClient(base_url=running.url, timeout=60) as http,
        ):
            await share(running.bus, "chat")
            for headers in ({HEADER: "anna"}, {"authorization": f"Bearer {running.token}"}):
                said = await http.post("/conversations/messages", json={"content": "say:x"}, headers=headers)
                assert said.status_code == 200 and "event: done" in said.text
            told = [
                (asked.headers["x-actor-id"], set(asked.headers["x-actor-permissions"].split(",")))
                for asked in provider.answer_requests
            ]
    assert ("anna", {"memory:/blocks/main/*", "tools:*"}) in told
    assert ("owner", {"memory:*", "tools:*"}) in told
    assert {actor for actor, scopes in told if "memory:*" in scopes} == {"owner"}
