"""The models of the HTTP API: the list, the choice of a conversation's model, and what that model was sent."""

from collections.abc import Sequence

import httpx2
import pytest

import trunkline
from tests.other_users import share
from trunkline.api.model import ModelAdapter, ModelInfo
from trunkline.testing.platform import platform
from trunkline.testing.scripted_model import ScriptedModel

from .test_block_changes import Guests

pytestmark = pytest.mark.anyio


class Models:
    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        listed = [ModelInfo(id=id, context_window=1000) for id in ("large", "small")]
        return [ScriptedModel(lambda request: request.model or "default", name="listing", models=listed)]


async def test_a_client_lists_models_and_chooses_one_for_a_conversation() -> None:
    """A model that is not listed is refused with the nearest ones, and no undocumented field is returned."""
    config = {"runtime.provider_adapter": "listing"}
    async with platform(plugins=[Models()], config=config) as running:
        headers = {"Authorization": f"Bearer {running.token}"}
        async with httpx2.AsyncClient(base_url=running.url, headers=headers) as http:
            listed = (await http.get("/api/models")).json()["adapters"]
            assert {one["adapter"] for one in listed} >= {"listing", "offline"}
            said = await running.say("hello")
            url = f"/api/conversations/{said.accepted.conversation}/model"
            assert (await http.get(url)).json() == {"model": "listing"}
            wrong = await http.put(url, json={"model": "smal"})
            assert wrong.status_code == 400 and wrong.json()["metadata"]["field"] == "/model"
            assert "listing/small" in wrong.json()["metadata"]["reason"]
            chosen = await http.put(url, json={"model": "small"})
            assert chosen.json() == {"model": "listing/small", "chosen": True}
            again = await running.say("again", conversation=said.accepted.conversation)
            assert again.text == "small"
            assert (await http.put(url, json={"model": None})).json() == {"model": "listing"}
            assert (await http.put(url, json={})).status_code == 400
            assert (await http.get("/api/conversations/conv_unknown/model")).status_code == 404
            assert (await http.get("/api/models", headers={"Authorization": ""})).status_code == 401


async def test_a_client_reads_what_the_model_was_sent() -> None:
    """The parts of the last turn or of a named one, with the texts if the owner asks for them: they include files of
    memory. Only with a credential.
    """
    config = {"runtime.provider_adapter": "listing"}
    async with platform(plugins=[Models(), Guests()], config=config) as running:
        headers = {"Authorization": f"Bearer {running.token}"}
        async with httpx2.AsyncClient(base_url=running.url, headers=headers) as http:
            first = await running.say("hello")
            said = await running.say("again", conversation=first.accepted.conversation)
            url = f"/api/conversations/{said.accepted.conversation}/context"
            last = (await http.get(url)).json()
            assert last["turn_id"] == said.accepted.turn and last["model"] == "listing"
            assert [part["name"] for part in last["parts"] if part["kind"] == "history"] == [
                "user",
                "assistant",
            ]
            assert not any("text" in part for part in last["parts"])
            named = (await http.get(url, params={"turn": first.accepted.turn, "texts": "true"})).json()
            assert named["parts"][-1]["text"] == "hello"
            assert (await http.get(url, params={"turn": "turn_1"})).status_code == 404
            assert (await http.get(url, params={"texts": "maybe"})).status_code == 400
            guest = {"Authorization": "", "x-guest": "yes"}
            await share(running.bus, "read")
            assert (await http.get(url, headers=guest)).json() == last
            refused = await http.get(url, params={"texts": "true"}, headers=guest)
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
            assert (await http.get("/api/conversations/conv_unknown/context")).status_code == 404
            assert (await http.get(url, headers={"Authorization": ""})).status_code == 401
