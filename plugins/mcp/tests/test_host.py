"""The tools of servers in a whole platform: in the catalogue, through the same dispatch, by names that no other has."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import trunkline
from trunkline.api.tool import ToolSpec
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.tools.messages import CallTool, ListTools, QuestionAnswer, ToolOutcome
from trunkline.contracts.tools.subjects import CALL_DECIDED_TOOL, CALL_TOOL, LIST_TOOLS
from trunkline.testing.platform import Platform, platform
from trunkline.testing.tool_calls import assert_audited
from trunkline_bus import new_id

from .mcp_servers import BarePlugin, entry

pytestmark = pytest.mark.anyio


class Native:
    """A tool of the platform itself."""

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="read")
        def echo() -> str:
            """The platform's own."""
            return "native"

        return [echo]


def write(home: Path, servers: dict[str, Any], name: str = "mcp.json") -> None:
    (home / name).parent.mkdir(exist_ok=True)
    (home / name).write_text(json.dumps({"mcpServers": servers}))


@asynccontextmanager
async def hosting(
    home: Path, servers: dict[str, Any], *plugins: object, **config: Any
) -> AsyncIterator[Platform]:
    write(home, servers)
    settings = {"plugins.disabled": ("trunkline-sandbox",)}  # so that these programs run as they are
    settings |= {name.replace("__", "."): value for name, value in config.items()}
    workers = ("memory", "tools")
    async with platform(home, plugins=[BarePlugin(), *plugins], config=settings, workers=workers) as running:
        yield running


async def catalogue(running: Platform, block: str = "main") -> dict[str, ToolSpec]:
    reported = await running.bus.call(LIST_TOOLS, ListTools(block=block))
    return {spec.name: spec for spec in reported.tools or ()}


async def shown(running: Platform, *names: str, block: str = "main") -> dict[str, ToolSpec]:
    """The catalogue once these are in it."""

    with anyio.fail_after(60):
        while not {*names} <= {*(found := await catalogue(running, block))}:  # noqa: ASYNC110 - the catalogue is asked for
            await anyio.sleep(0.05)
    return found


async def call(running: Platform, name: str, block: str = "main", **arguments: Any) -> ToolOutcome:
    request = CallTool(
        call=new_id("call"), name=name, arguments=arguments, block=block, conversation="conv_1", turn="turn_1",
        actor="owner",
    )  # fmt: skip
    return await last_of(running, request)


async def test_a_servers_tools_follow_its_configuration_file(tmp_path):
    """The file is read again without a restart, and the tools of a removed server are removed."""
    async with hosting(tmp_path, {"brave": entry("plain")}) as running:
        specs = await shown(running, "echo")
        assert (specs["echo"].source, specs["echo"].effect) == ("mcp:brave", "send")
        outcome = await call(running, "echo")
        assert outcome.status == "ok" and outcome.output.startswith('<context source="mcp:brave"')
        write(tmp_path, {"brave": entry("pages")})
        assert "tool_7" in await shown(running, "tool_7", "tool_199")
        assert (await call(running, "echo")).status == "error"


async def test_mn_t12_tools_that_share_a_name_are_distinguished_by_server(tmp_path):
    """``brave__echo`` is called ``echo`` at its server; the platform's own keeps its name."""
    servers = {"brave": entry("plain"), "kagi": entry("split"), "pager": entry("repeat")}
    async with hosting(tmp_path, servers, Native()) as running:
        specs = await shown(running, "brave__echo", "kagi__echo", "search")
        assert specs["echo"].source.startswith("native:")
        assert (await call(running, "echo")).output == "native"
        assert "echo of plain" in (await call(running, "brave__echo")).output
        assert "echo of split" in (await call(running, "kagi__echo")).output
        assert specs["kagi__echo"].identity == "mcp:kagi:echo"


async def test_a_blocks_server_is_invisible_to_other_blocks(tmp_path):
    """Another block neither sees nor may call its tools; it works in the block's own folder."""
    write(tmp_path, {"files": entry("plain")}, "mcp/garden.json")
    async with hosting(tmp_path, {}) as running:
        assert "echo" in await shown(running, "echo", block="garden")
        assert "echo" not in await catalogue(running)
        assert "echo of plain" in (await call(running, "echo", block="garden")).output
        refused = await call(running, "echo")
        assert refused.status == "error" and "may not use it" in refused.output


DENIAL = {"subject": "block:main", "resource": "tool:mcp:brave:*", "action": "*", "effect": "deny"}


async def test_a_denied_call_never_reaches_the_server(tmp_path):
    """The owner denies a block all tools of a server. The model is told which call was refused, by which policy, and
    that nothing was run; the audit log records it. The server receives only another block's call, none with invalid
    arguments, and none during planning."""
    received = tmp_path / "heard"
    servers = {"brave": entry("plain", env={"HEARD": str(received)})}
    async with hosting(tmp_path, servers) as running:
        await shown(running, "echo")
        files = {
            "policies/no-brave.json": json.dumps(DENIAL),
            "blocks/plans/block.toml": "[permissions]\nplan = true\n",
        }
        await running.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files=files, actor="owner"))
        refused = await call(running, "echo")
        assert refused.status == "error" and "tools/call" not in received.read_text()
        for said in (
            "echo (send) was refused to the block main",
            "no-brave",
            "denies it",
            "Nothing was run.",
        ):
            assert said in refused.output
        planning = await call(running, "echo", block="plans")
        assert planning.status == "error" and "--no-plan" in planning.output
        wrong = await call(running, "echo", block="other", colour="red")
        assert wrong.status == "error" and "colour" in wrong.output
        assert (await call(running, "echo", block="other")).status == "ok"
        assert received.read_text().count("tools/call") == 1
        await assert_audited(running.bus, {one.call: "error" for one in (refused, planning, wrong)})
        lines = [stored.data async for stored in running.bus.history(AUDIT)]
        (denied,) = [one for one in lines if one.call == refused.call and one.event == "decision"]
        assert (denied.decision, denied.by, denied.tool) == ("denied", ("no-brave",), "echo")


async def test_cc_t14_a_hanging_call_times_out_and_the_next_one_is_answered(tmp_path):
    """The outcome is unknown, because the tool sends; the server is told of the cancellation, and serves later
    calls."""
    async with hosting(tmp_path, {"brave": entry("plain", timeout=1)}) as running:
        await shown(running, "stuck")
        stuck = await call(running, "stuck")
        assert stuck.status == "unknown" and "did not finish within 1 second" in stuck.output
        await assert_audited(running.bus, {stuck.call: "unknown"})
        with anyio.fail_after(60):
            while "cancelled []" in (await call(running, "echo")).output:  # noqa: ASYNC110 - what it heard by now
                await anyio.sleep(0.05)


async def test_a_bad_server_does_not_affect_others(tmp_path):
    """One cannot start, one ends at once, one entry is nothing; the tools of the fourth are there."""
    servers = {
        "gone": {"command": "/no/such/program"}, "ends": entry("die"), "nothing": {"args": []},
        "good": entry("repeat"),
    }  # fmt: skip
    async with hosting(tmp_path, servers) as running:
        assert "search" in await shown(running, "search", "other")


async def test_an_untrusted_servers_tools_always_need_approval(tmp_path):
    """By default a person decides; a read-only tool of a trusted server runs."""
    servers = {"liar": entry("liar"), "friend": entry("liar", trust="trusted")}
    async with hosting(tmp_path, servers, permissions__approvals="some") as running:
        await shown(running, "liar__peek", "friend__peek")
        asked = await call(running, "liar__peek")
        assert asked.status == "approval" and asked.output == ""
        assert (await call(running, "friend__peek")).status == "ok"


@pytest.mark.parametrize("changed", [{"SAYS": "Echo, and mail it to me."}, {"WANTS": "password"}])
async def test_a_lasting_approval_ends_when_the_tool_changes(tmp_path: Path, changed: dict[str, str]) -> None:
    """A yes for always, and one that was on its way, hold for the description and the schema that a person saw. The
    question names the server, and says no more than is known of what its tool does."""
    async with hosting(tmp_path, {"brave": entry("plain")}, permissions__approvals="some") as running:
        await shown(running, "echo")
        asked = await call(running, "echo")
        assert asked.status == "approval" and isinstance(asked.detail, trunkline.ApprovalDetail)
        assert asked.question == (
            "The agent of block main wants to use a tool that may send something out: "
            "echo of the MCP server brave. Allow it?"
        )
        assert asked.detail.covers.startswith("echo of the MCP server brave with")
        always = {"subject": "block:main", "resource": "tool:echo", "action": "*", "effect": "allow"}
        files = {
            "policies/approved-1.json": json.dumps(always | {"conditions": {"shape": asked.detail.shape}})
        }
        await running.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files=files, actor="owner"))
        assert (await call(running, "echo")).status == "ok"
        write(tmp_path, {"brave": entry("plain", env=changed)})
        with anyio.fail_after(60):
            while (await call(running, "echo")).status != "approval":  # noqa: ASYNC110 - the catalogue is asked for
                await anyio.sleep(0.05)
        request = CallTool(
            call=new_id("call"), name="echo", arguments={}, block="main", conversation="conv_1", turn="turn_1",
            actor="owner", approved=asked.call_hash,
        )  # fmt: skip
        late = await last_of(running, request)
        assert late.status == "error" and "was not run" in late.output


async def test_a_servers_elicitation_is_put_to_a_person(tmp_path: Path) -> None:
    """The call reports its question and waits in place. Repeated with the answer it ends with that answer, and after
    a refusal the server is told that the person declined. An answer is no approval: its hash belongs to no call."""
    async with hosting(tmp_path, {"brave": entry("plain")}, permissions__approvals="none") as running:
        await shown(running, "ask")
        request = CallTool(
            call=new_id("call"), name="ask", arguments={}, block="main", conversation="conv_1", turn="turn_1",
            actor="owner",
        )  # fmt: skip
        for text, reported in (("green", '{"colour": "green"}'), (None, '{"action": "decline"}')):
            asked = await last_of(running, msgspec.structs.replace(request, call=new_id("call")))
            assert asked.status == "approval" and isinstance(asked.detail, trunkline.ApprovalDetail)
            assert asked.detail.is_question and "The MCP server brave wants to know" in asked.detail.text
            said = QuestionAnswer(question=asked.call_hash, by="owner", text=text)
            again = msgspec.structs.replace(request, call=asked.call, answers=(said,), again=True)
            ended = await last_of(running, again)
            assert ended.status == "ok" and reported in ended.output
            repeated = await last_of(running, again)
            assert repeated.repeated and repeated.output == ended.output


async def last_of(running: Platform, request: CallTool) -> ToolOutcome:
    async with running.bus.call_streaming(
        CALL_DECIDED_TOOL if request.has_decisions else CALL_TOOL, request, idle_timeout=60
    ) as replies:
        return [reply async for reply in replies][-1]
