"""A caller that a block is delegated to: its claims about itself are ignored, and it cannot reach calls of others."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import anyio
import pytest

import trunkline
from trunkline.contracts.tools.messages import CallTool, CancelCall, ListTools, ToolOutcome
from trunkline.contracts.tools.subjects import (
    DELEGATED_CALL_TOOL,
    DELEGATED_CANCEL_CALL,
    DELEGATED_LIST_TOOLS,
)
from trunkline_bus import RemoteFault, new_id

from .conftest import Caller, tools_worker

pytestmark = pytest.mark.anyio


class NotePlugin:
    """Tools that say who calls, change something once, and take their time."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, for the next test."""
        self.begun, self.ended = anyio.Event(), anyio.Event()
        self.written: list[str] = []

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="read")
        def who(context: trunkline.ToolContext) -> str:
            """Say who calls."""
            return f"{context.actor} of {context.block} in {context.conversation}, {context.turn}, {context.call}"

        @trunkline.tool(effect="write")
        def write(text: str) -> str:
            """Write into the diary."""
            self.written.append(text)
            return f"written: {text}"

        @trunkline.tool(effect="read")
        async def dwell() -> str:
            """Take your time."""
            self.begun.set()
            try:
                await anyio.sleep(60)
            finally:
                self.ended.set()
            return "done"

        @trunkline.tool(effect="read")
        def much() -> str:
            """Say much."""
            return "secret " * 50_000

        return [who, write, dwell, much]


@pytest.fixture(scope="module")
async def shared(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[NotePlugin, Caller]]:
    """One worker for the tests without settings of their own."""
    plugin = NotePlugin()
    async with tools_worker(tmp_path_factory.mktemp("tools"), plugin) as caller:
        yield plugin, caller


@pytest.fixture
def plugin(shared: tuple[NotePlugin, Caller]) -> NotePlugin:
    """The plugin of the shared worker, which has done nothing."""
    shared[0].forget()
    return shared[0]


@pytest.fixture
def caller(shared: tuple[NotePlugin, Caller], plugin: NotePlugin) -> Caller:
    """The caller of the shared worker."""
    return shared[1]


def said(name: str, arguments: dict[str, Any], **more: Any) -> CallTool:
    """A call as a program that was taken over would put it: as another's."""
    claims = {
        "call": new_id("call"),
        "block": "main",
        "conversation": "conv_1",
        "turn": "turn_1",
        "actor": "owner",
    }
    return CallTool(name=name, arguments=arguments, **(claims | more))


async def delegated(
    caller: Any, request: CallTool, agent: str = "claude", block: str = "garden"
) -> ToolOutcome:
    async with caller.bus.call_streaming(
        DELEGATED_CALL_TOOL, request, idle_timeout=20, agent=agent, block=block
    ) as replies:
        async for reply in replies:
            if isinstance(reply, ToolOutcome):
                return reply
    raise AssertionError("no outcome")


async def test_the_subject_names_agent_and_block(caller: Caller) -> None:
    """The call's own fields are ignored: its block, actor, conversation, turn and key. Two calls of one session
    belong together, and those of another agent, or in another block, do not."""
    one, two = [(await delegated(caller, said("who", {}))).output.split(" in ") for _ in range(2)]
    assert one[0] == two[0] == "agent:claude of garden"
    assert one[1].split(", ")[:2] == two[1].split(", ")[:2]
    for foreign in ("conv_1", "turn_1", "call_"):
        assert foreign not in one[1]
    for agent, block in (("other", "garden"), ("claude", "main")):
        reported = (await delegated(caller, said("who", {}), agent, block)).output
        assert (
            reported.startswith(f"agent:{agent} of {block} in delegated_")
            and one[1].split(", ")[0] not in reported
        )


async def test_the_catalogue_is_that_of_the_delegated_block(caller: Caller) -> None:
    """Whichever block the request names."""
    caller.files["blocks/shed/block.toml"] = 'tools = ["who"]\n'
    reported = await caller.bus.call(
        DELEGATED_LIST_TOOLS, ListTools(block="main"), agent="claude", block="shed"
    )
    assert [spec.name for spec in reported.tools] == ["who"]
    refused = await delegated(caller, said("write", {"text": "x"}), block="shed")
    assert refused.status == "error" and "shed" in refused.output


async def test_the_callers_permissions_restrict_a_delegated_call(caller: Caller) -> None:
    """A program that serves several people bounds each call by what its person may do; nothing is widened."""
    allowed = await delegated(caller, said("who", {}, permissions=("tools:who",)))
    refused = await delegated(caller, said("write", {"text": "x"}, permissions=("tools:who",)))
    assert (allowed.status, refused.status) == ("ok", "error") and "write" in refused.output
    caller.files["blocks/hut/block.toml"] = 'tools = ["who"]\n'
    assert (
        await delegated(caller, said("write", {"text": "x"}, permissions=("*",)), block="hut")
    ).status == "error"


async def test_a_caller_cannot_reach_calls_of_another(caller: Caller, plugin: NotePlugin) -> None:
    """Its key, the conversation and the block are all known: the ledger's outcome is not returned, the stored result
    not read, and the running call not stopped."""
    await caller.call("write", {"text": "mine"}, key="call_mine")
    theirs = await delegated(
        caller, said("write", {"text": "mine"}, call="call_mine", again=True), block="main"
    )
    assert not theirs.repeated and plugin.written == ["mine", "mine"]
    long = await caller.call("much")
    for more in ({}, {"forked_from": "conv_1"}):
        read = await delegated(caller, said("read_result", {"id": long.stored.id}, **more), block="main")
        assert read.status == "error" and "secret" not in read.output
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(caller.call, "dwell", key="call_long"))
        await plugin.begun.wait()
        await caller.bus.publish(
            DELEGATED_CANCEL_CALL, CancelCall(), agent="claude", block="main", call="call_long"
        )
        await delegated(caller, said("who", {}), block="main")
        assert not plugin.ended.is_set()
        await caller.cancel("call_long")


async def test_a_caller_can_cancel_its_own_call(caller: Caller, plugin: NotePlugin) -> None:
    """The call is selected by the caller's own key."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(delegated, caller, said("dwell", {}, call="call_1"))
        await plugin.begun.wait()
        await caller.bus.publish(
            DELEGATED_CANCEL_CALL, CancelCall(), agent="claude", block="garden", call="call_1"
        )
        with anyio.fail_after(30):
            await plugin.ended.wait()


async def test_a_delegated_call_cannot_carry_decisions(tools: Any) -> None:
    """It is refused, and nothing is run."""
    plugin = NotePlugin()
    async with tools(plugin, config={"permissions.approvals": "some"}) as caller:
        request = said("write", {"text": "x"}, call="call_1")
        asked = await delegated(caller, request)
        assert asked.status == "approval"
        with pytest.raises(RemoteFault, match="Only the monitor"):
            await delegated(caller, said("write", {"text": "x"}, call="call_1", approved=asked.call_hash))
        assert plugin.written == []
