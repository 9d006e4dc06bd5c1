"""Files that an agent gives to the person: stored beside the conversation, named in the feed, and read by channels."""

from collections.abc import AsyncIterator

import httpx
import pytest
from msgspec import UnsetType

import trunkline
from trunkline import RemoteFault
from trunkline.api.channel import Attachment
from trunkline.api.gateway import SendMessage
from trunkline.api.turn import ToolEnded
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.memory.purge import MEMORY_PURGE, PurgeMemory
from trunkline.contracts.tools.messages import CallTool, ToolOutcome
from trunkline.contracts.tools.subjects import DELEGATED_CALL_TOOL
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

TABLE = b"a,b\n1,2\n" * 30_000
"""More than a piece of a file on the bus."""


class Models:
    """A plugin with a model that calls the tool that a message names."""

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        return [ScriptedModel()]


@pytest.fixture(scope="module")
async def running(anyio_backend: str) -> AsyncIterator[Platform]:
    async with platform(plugins=[Models()], config={"runtime.provider_adapter": "scripted"}) as started:
        yield started


async def given(running: Platform) -> tuple[GatewayClient, str, tuple[Attachment, ...]]:
    """Return a client, a conversation, and the files that its agent gave to the person."""
    workspace = running.home.workspace("main")
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "plan.csv").write_bytes(TABLE)
    gateway = GatewayClient(running.bus, "cli")
    accepted = await gateway.send(SendMessage(content='call:send_file {"path": "plan.csv"}'))
    events = [event async for event in gateway.watch(accepted.conversation, accepted.turn)]
    (ended,) = (event for event in events if isinstance(event, ToolEnded))
    assert not isinstance(ended.files, UnsetType), ended.output
    return gateway, accepted.conversation, ended.files


async def test_a_given_file_is_stored_and_read_back_whole(running: Platform) -> None:
    """The feed names it with its type and size, memory has its bytes beside the conversation, a channel reads them."""
    gateway, conversation, (file,) = await given(running)
    assert (file.name, file.media_type, file.size) == ("plan.csv", "text/csv", len(TABLE))
    assert f"{conversation}.files/" in file.path
    assert (running.home.memory / file.path).read_bytes() == TABLE
    assert await gateway.file(file) == TABLE


async def test_a_stored_conversation_names_the_files_that_were_given(running: Platform) -> None:
    """The result of the call has them in the conversation and in its export, so that a channel shows them later."""
    gateway, conversation, (file,) = await given(running)
    view = await gateway.conversation(conversation, include_tools=True)
    assert [message.files for message in view.messages if message.role == "tool"] == [(file,)]
    assert file.path in (await gateway.export_conversation(conversation, "markdown")).text
    headers = {"authorization": f"Bearer {running.token}"}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as http:
        shown = await http.get(f"/conversations/{conversation}", params={"include": "tools"})
    results = [message for message in shown.json()["messages"] if message["role"] == "tool"]
    assert results[0]["metadata"]["files"] == [
        {"path": file.path, "name": "plan.csv", "media_type": "text/csv", "size": len(TABLE)}
    ]


async def test_a_given_file_is_downloaded_over_http(running: Platform) -> None:
    """Whole, as an attachment that no browser opens as a page, and by the id of its own conversation only."""
    _, conversation, (file,) = await given(running)
    headers = {"authorization": f"Bearer {running.token}"}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as http:
        place = f"/api/conversations/{conversation}/file"
        got = await http.get(place, params={"path": file.path})
        assert got.status_code == 200 and got.content == TABLE
        assert got.headers["content-disposition"] == "attachment; filename*=UTF-8''plan.csv"
        assert got.headers["content-type"] == "application/octet-stream"
        assert got.headers["x-content-type-options"] == "nosniff"
        for path in ("blocks/main/block.toml", file.path.replace("blocks/main/", "blocks/other/"), ""):
            assert (await http.get(place, params={"path": path})).status_code == 404
        other = "/api/conversations/conv_aaaaaaaaaaaaaaaaaaaaaaaaaa/file"
        assert (await http.get(other, params={"path": file.path})).status_code == 404


@pytest.mark.parametrize(
    "path",
    ["AGENT.md", "blocks/main/block.toml", "blocks/main/conversations/a/conv_aaaa.files/x", "../secret"],
)
async def test_nothing_but_files_of_conversations_can_be_read(running: Platform, path: str) -> None:
    """Other files of memory, and conversations that do not exist, are not found."""
    gateway = GatewayClient(running.bus, "cli")
    with pytest.raises(RemoteFault) as refused:
        await gateway.file(Attachment(path=path, name="x", media_type="text/plain", size=1))
    assert refused.value.code == "not_found"


async def test_a_path_of_another_block_is_not_found(running: Platform) -> None:
    """The block in the path must be that of the conversation."""
    gateway, _, (file,) = await given(running)
    elsewhere = file.path.replace("blocks/main/", "blocks/other/")
    with pytest.raises(RemoteFault) as refused:
        await gateway.file(Attachment(path=elsewhere, name="x", media_type="text/plain", size=1))
    assert refused.value.code == "not_found"


async def test_a_purge_of_the_conversation_removes_its_given_files(running: Platform) -> None:
    """A purge leaves the file nowhere, as for files of people."""
    gateway, conversation, (file,) = await given(running)
    purge = PurgeMemory(target=conversation, confirm=conversation, actor="owner")
    await running.bus.call(MEMORY_PURGE, purge, timeout=60)
    assert not (running.home.memory / file.path).exists()
    with pytest.raises(RemoteFault):
        await gateway.file(file)


async def test_an_outside_agent_has_no_person_to_give_a_file_to(running: Platform) -> None:
    """Over MCP nobody would see the file: the call is refused, and nothing is stored."""
    await given(running)
    before = sorted(running.home.memory.glob("blocks/*/conversations/*/*.files/*"))
    call = CallTool(
        call="call_outside", name="send_file", arguments={"path": "plan.csv"}, block="main", conversation="c",
        turn="t", actor="owner",
    )  # fmt: skip
    async with running.bus.call_streaming(
        DELEGATED_CALL_TOOL, call, idle_timeout=20, agent="claude", block="main"
    ) as replies:
        (outcome,) = [reply async for reply in replies if isinstance(reply, ToolOutcome)]
    assert outcome.status == "error" and "from here" in outcome.output
    assert sorted(running.home.memory.glob("blocks/*/conversations/*/*.files/*")) == before
