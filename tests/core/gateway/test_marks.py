"""Pins and the archive of conversations over HTTP and the bus, the block that a message names, and exports."""

from typing import Any

import pytest

from trunkline.contracts.conversations.messages import ListConversations
from trunkline.contracts.memory.files import ReadMemory
from trunkline.contracts.memory.subjects import MEMORY_READ
from trunkline.errors import ErrorCode
from trunkline_bus import RemoteFault

from .conftest import Environment
from .test_blocks import talk

pytestmark = pytest.mark.anyio


async def listed(env: Environment, **params: str) -> list[str]:
    """Return the ids of the list over HTTP, of which the bus has the same."""
    response = await env.http.get("/conversations", params={"limit": "100", **params})
    assert response.status_code == 200, response.text
    found = [one["id"] for one in response.json()["conversations"]]
    assert response.json()["total"] == len(found)
    return found


async def test_a_conversation_is_pinned(env: Environment) -> None:
    """Clients can list the pinned ones and the others apart. The pin stands in the file that a person reads."""
    mine, other = await talk(env, "Where are the beans?"), await talk(env, "And the peas?")
    response = await env.http.patch(f"/conversations/{mine}", json={"pinned": True})
    assert response.status_code == 200 and response.json()["pinned"] is True, response.text
    assert response.json()["title"] == "Where are the beans?", "the title is as it was"
    assert (await env.http.get(f"/conversations/{mine}")).json()["pinned"] is True
    pinned, others = await listed(env, pinned="true"), await listed(env, pinned="false")
    assert mine in pinned and other in others and not set(pinned) & set(others)
    path = f"blocks/main/conversations/{mine[-1].lower()}/{mine}.jsonl"
    assert '"pinned":true' in (await env.bus.call(MEMORY_READ, ReadMemory(path=path))).content.split("\n")[0]
    assert not (await env.terminal.mark_conversation(mine, pinned=False)).pinned
    assert mine not in await listed(env, pinned="true")


async def test_an_archived_conversation_is_found_and_comes_back(env: Environment) -> None:
    """It leaves the list, and the numbers of the terminal's list too; a search and the id find it; a new message, or
    its owner, puts it back."""
    mine = await talk(env, "Where is the rhubarb?")
    response = await env.http.patch(f"/conversations/{mine}", json={"archived": True, "title": "Old"})
    assert (response.json()["archived"], response.json()["title"]) == (True, "Old"), response.text
    assert mine not in await listed(env)
    assert mine not in [
        one.id for one in (await env.terminal.conversations(ListConversations())).conversations
    ]
    for params in ({"search": "rhubarb"}, {"archived": "only"}, {"archived": "include"}):
        assert mine in await listed(env, **params), params
    assert mine not in await listed(env, search="rhubarb", archived="exclude")
    assert (await env.http.get(f"/conversations/{mine}")).json()["archived"] is True
    assert (await env.terminal.block("main")).conversations >= 1
    await talk(env, "Found it.", conversation=mine)
    assert mine in await listed(env)
    await env.terminal.mark_conversation(mine, archived=True)
    assert not (await env.terminal.mark_conversation(mine, archived=False)).archived
    assert mine in await listed(env)


@pytest.mark.parametrize(
    ("body", "field"),
    [({"pinned": "yes"}, "/pinned"), ({"archived": None}, "/archived"), ({"star": True}, "/title")],
)
async def test_marks_that_are_none(env: Environment, body: dict[str, Any], field: str) -> None:
    """Refused with the field."""
    conversation = await talk(env, "hello there")
    response = await env.http.patch(f"/conversations/{conversation}", json=body)
    assert response.status_code == 400 and response.json()["metadata"]["field"] == field, response.text
    with pytest.raises(RemoteFault) as nothing:
        await env.terminal.mark_conversation(conversation)
    assert nothing.value.code == ErrorCode.INVALID_REQUEST


async def test_a_message_names_its_block_beside_the_content(env: Environment) -> None:
    """The field counts as the one in ``metadata`` does. A message that names two blocks, an unknown one, or another
    than its conversation's reaches no agent."""
    path = "/conversations/messages"
    unknown = await env.http.post(path, json={"content": "hi", "block": "nowhere"})
    assert unknown.status_code == 404 and unknown.json()["metadata"]["field"] == "/block", unknown.text
    two = {"content": "hi", "block": "main", "metadata": {"block": "garden"}}
    refused = await env.http.post(path, json=two)
    assert refused.status_code == 400 and refused.json()["metadata"]["field"] == "/block", refused.text
    sent = await env.http.post(path, json={"content": "hi", "block": "main", "metadata": {"block": "main"}})
    assert sent.status_code == 200, sent.text
    mine = f"/conversations/{sent.headers['x-conversation-id']}/messages"
    assert (await env.http.post(mine, json={"content": "hi", "block": "garden"})).status_code == 409
    assert (await env.http.post(mine, json={"content": "hi", "block": "main"})).status_code == 200


async def test_an_export_is_a_file_to_save(env: Environment) -> None:
    """A browser never shows what an agent wrote as a page of the gateway."""
    mine = await talk(env, "<script>alert(1)</script>")
    for format, kind, ending in (("", "text/markdown", "md"), ("json", "application/json", "json")):
        response = await env.http.get(f"/api/conversations/{mine}/export", params={"format": format})
        assert response.status_code == 200 and response.headers["content-type"].startswith(kind), (
            response.text
        )
        assert response.headers["content-disposition"] == f'attachment; filename="{mine}.{ending}"'
        assert response.headers["x-content-type-options"] == "nosniff"
    assert (await env.http.get(f"/api/conversations/{mine}/export?format=pdf")).status_code == 400
    for unknown in ("conv_nothing", "..%2f"):
        for part in ("export", "branches"):
            assert (await env.http.get(f"/api/conversations/{unknown}/{part}")).status_code == 404
