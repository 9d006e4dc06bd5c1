"""The tools worker over the bus: catalogue, calls, refusals, and that no tool hurts it."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process

import trunkline
from trunkline import ToolContext, ToolError, ToolOutcome
from trunkline._util.untrusted_text import unwrap_tool_result
from trunkline.api.tool import Proceed, Stage, ToolInvocation, ToolSpec
from trunkline.contracts.sandbox.program_request import ProgramRequest
from trunkline.contracts.sandbox.sandbox import SandboxProcess
from trunkline.contracts.tools.messages import EffectFinished, EffectStarted
from trunkline.runtime import guard_cache
from trunkline.workers.tools import ledger
from trunkline_bus import RemoteFault, new_id
from trunkline_bus.streams.retry import request_with_retry

from .conftest import Caller, in_new_block, tools_worker

pytestmark = pytest.mark.anyio


class Workshop:
    """Tools for the tests, with their effects."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, for the next test."""
        self.ran: list[str] = []
        self.present = 0
        self.most = 0
        self.go = anyio.Event()
        self.together = anyio.Event()
        self.enough, self.enough_in_thread = anyio.Event(), threading.Event()

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="read")
        def echo(text: str) -> str:
            """Say the text."""
            self.ran.append("echo")
            return text

        @trunkline.tool(effect="write")
        async def note(text: str) -> str:
            """Note a text."""
            self.ran.append(text)
            return f"noted {text}"

        @trunkline.tool(effect="read")
        async def meet() -> str:
            """Wait until three are here."""
            self.present += 1
            if self.present == 3:
                self.together.set()
            await self.together.wait()
            return "met"

        @trunkline.tool(effect="write")
        async def wait(context: ToolContext) -> str:
            """Wait for the signal to continue."""
            self.ran.append("wait")
            context.report("waiting for the signal\ud800")
            await self.go.wait()
            return "went on"

        @trunkline.tool(effect="read", timeout=1.5)
        async def hang() -> str:
            """Hang."""
            await anyio.sleep_forever()
            return ""

        @trunkline.tool(effect="write", timeout=1.5)
        def hang_in_thread() -> str:
            """Hang in a thread."""
            self.enough_in_thread.wait(60)
            self.ran.append("late")
            return ""

        @trunkline.tool(effect="read", timeout=1.5)
        async def ignore() -> str:
            """Ignore that it is cancelled, for a while."""
            with anyio.CancelScope(shield=True):
                await self.enough.wait()
            return ""

        @trunkline.tool(effect="read")
        async def fail(kind: str) -> str:
            """Fail."""
            if kind == "self":
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await anyio.sleep(1)
            raise {
                "told": ToolError("The moon is down. Try the sun."),
                "secret": RuntimeError("the password is hunter2"),
                "exit": SystemExit(3),
                "interrupt": KeyboardInterrupt(),
                "stop": StopIteration(),
                "cancel": anyio.get_cancelled_exc_class()(),
                "group": ExceptionGroup("g", [ToolError("Told by a group.")]),
            }[kind]

        @trunkline.tool(effect="read")
        def fail_in_thread(kind: str) -> str:
            """Fail in a thread."""
            raise {
                "secret": RuntimeError("hunter2"),
                "exit": SystemExit(3),
                "leave": GeneratorExit(),
                "told": ToolError("Told."),
            }[kind]

        @trunkline.tool(effect="write")
        async def touch(path: trunkline.BlockPath) -> str:
            """Change a file, slowly."""
            self.present += 1
            self.most = max(self.most, self.present)
            if self.present == 2:
                self.together.set()
            await anyio.sleep(0.05)
            self.present -= 1
            return path

        @trunkline.tool(effect="exec")
        async def execute(command: str) -> str:
            """Run a program."""
            self.ran.append(command)
            return command

        return [
            echo, note, meet, wait, hang, hang_in_thread, ignore, fail, fail_in_thread, touch, execute,
            Raw("number", 7), Raw("surrogate", "a\ud800b"), Raw("nothing", None),
        ]  # fmt: skip


class Raw(trunkline.Tool):
    """Returns what no tool should."""

    def __init__(self, name: str, value: Any) -> None:
        self.spec = ToolSpec(
            name=name,
            description="Returns it.",
            effect="read",
            parameters={"type": "object", "properties": {}},
        )
        self.value = value

    async def __call__(self, context: ToolContext, arguments: dict[str, Any]) -> Any:
        return self.value


@pytest.fixture(scope="module")
async def shared(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Workshop, Caller]]:
    """One worker for the tests without settings of their own that leave nothing running."""
    shop = Workshop()
    async with tools_worker(tmp_path_factory.mktemp("tools"), shop) as caller:
        yield shop, caller


@pytest.fixture
def shop(shared: tuple[Workshop, Caller]) -> Workshop:
    """The tools of the shared worker, which have done nothing."""
    shop, _ = shared
    shop.forget()
    return shop


@pytest.fixture
async def caller(shared: tuple[Workshop, Caller], shop: Workshop) -> AsyncIterator[Caller]:
    """The caller of the shared worker, in a block of its own."""
    async with in_new_block(shared[1]) as caller:
        yield caller


# The catalogue ------------------------------------------------------------------------------------------------


async def test_the_catalogue_has_a_version_and_is_sent_once(caller: Caller) -> None:
    """All tools with their definitions; an asker that has the version gets no tools again."""
    catalogue = await caller.catalogue()
    specs = {spec.name: spec for spec in catalogue.tools}
    assert {"read_file", "write_file", "echo"} <= set(specs)
    assert specs["read_file"].source == "native:trunkline-files"
    assert specs["echo"].parameters["properties"]["text"]["type"] == "string"
    again = await caller.catalogue(version=catalogue.version)
    assert (again.version, again.tools) == (catalogue.version, None)


async def test_a_block_is_limited_to_its_tools_and_a_change_counts_at_once(caller: Caller) -> None:
    """The ``tools`` line of block.toml holds for the list and for calls, and is read again when memory changes."""
    caller.files["blocks/small/block.toml"] = 'tools = ["echo"]'
    assert await caller.names("small") == {"echo"}
    assert "note" in await caller.names("main")
    refused = await caller.call("note", {"text": "x"}, block="small")
    assert refused.status == "error"
    assert "the block small may not use it" in refused.output
    assert (await caller.call("echo", {"text": "x"}, block="small")).output == "x"
    await caller.remember("blocks/small/block.toml", 'tools = ["echo", "note"]')

    async def both() -> bool:
        return bool(await caller.names("small") == {"echo", "note"})

    await caller.until(both)
    assert (await caller.call("note", {"text": "x"}, block="small")).status == "ok"


async def test_limits_that_cannot_be_read_refuse(caller: Caller, shop: Workshop) -> None:
    """Guards fail closed: an invalid block.toml leaves a block without tools."""
    caller.files["blocks/odd/block.toml"] = "tools = 7"
    refused = await caller.call("note", {"text": "x"}, block="odd")
    assert refused.status == "error"
    assert "block.toml is not valid" in refused.output
    assert not shop.ran
    assert await caller.names("odd") == set()


async def test_rules_not_loaded_before_memory_left_permit_nothing(
    tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cached limits remain in force while memory is missing; limits that were never read refuse, after a while."""
    monkeypatch.setattr(guard_cache, "WAIT_SECONDS", 1.0)
    shop = Workshop()
    async with tools(shop, memory=False) as caller:
        refused = await caller.call("note", {"text": "x"})
        assert "cannot be read now" in refused.output
        assert not shop.ran


async def test_an_unknown_tool_is_reported_with_similar_names(caller: Caller) -> None:
    """Unknown is refused, with a did-you-mean."""
    refused = await caller.call("read_fle", {"path": "x"})
    assert refused.status == "error"
    assert "no tool called 'read_fle'. Did you mean read_file" in refused.output


@pytest.mark.parametrize("block", ["", "../main", "Main", "a" * 40])
async def test_an_invalid_block_name_is_refused(caller: Caller, block: str) -> None:
    """A block's name becomes a folder, so nothing else than a name may come."""
    with pytest.raises(RemoteFault, match="invalid_request"):
        await caller.call("echo", {"text": "x"}, block=block)
    with pytest.raises(RemoteFault, match="invalid_request"):
        await caller.call("echo", {"text": "x"}, key="no key")


# Calls --------------------------------------------------------------------------------------------------------


async def test_the_file_tools_work_in_the_workspace_of_the_block(caller: Caller) -> None:
    """A written file is there, for this block alone."""
    assert (await caller.call("write_file", {"path": "a/b.md", "content": "hello"})).status == "ok"
    assert (caller.workspace / "a" / "b.md").read_text() == "hello"
    assert unwrap_tool_result((await caller.call("read_file", {"path": "a/b.md"})).output) == "hello"
    assert (await caller.call("read_file", {"path": "a/b.md"}, block="other")).status == "error"


async def test_arguments_are_repaired_on_the_way(caller: Caller) -> None:
    """Text that is JSON, and numbers in text, reach the tool in their types."""
    await caller.call("write_file", '{"path": "a", "content": "0123456789"}')
    assert unwrap_tool_result(
        (await caller.call("read_file", {"path": "a", "limit": "4"})).output
    ).startswith("0123\n\n[Cut")
    assert unwrap_tool_result((await caller.call("read_file", {'path="a"': ""})).output) == "0123456789"
    refused = await caller.call("read_file", {"path": "a", "limit": "lots"})
    assert '"limit" must be a whole number' in refused.output


async def test_a_result_arrives_unchanged(tools: Any) -> None:
    """Control characters and a megabyte (PA-T15), as far as results are shown whole."""
    text = "".join(map(chr, range(256))) + "\u2028\U0001f600" + "x\r\n\t\x1b[0m" * 200_000
    async with tools(Workshop(), config={"tools.max_shown_result": 4_000_000}) as caller:
        found = await caller.call("echo", {"text": text})
        assert found.output == text
        assert (await caller.call("echo", {"text": text}, key=found.call)).output == text


async def test_calls_run_at_the_same_time(caller: Caller) -> None:
    """Three calls that wait for each other all return (PA-T14)."""
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(caller.call, "meet")


async def test_a_hanging_tool_does_not_hold_the_others(tools: Any) -> None:
    """The tool times out with a text; other calls return before that, even when it hangs in a thread or ignores its
    cancellation."""
    shop = Workshop()
    async with tools(shop) as caller, anyio.create_task_group() as tasks:
        found: dict[str, ToolOutcome] = {}

        async def one(name: str) -> None:
            found[name] = await caller.call(name)

        for name in ("hang", "hang_in_thread", "ignore"):
            tasks.start_soon(one, name)
        assert (await caller.call("echo", {"text": "x"})).output == "x"
        await caller.until(lambda: len(found) == 3)
        statuses = {name: outcome.status for name, outcome in found.items()}
        assert statuses == {"hang": "error", "hang_in_thread": "unknown", "ignore": statuses["ignore"]}
        assert "did not finish within 1.5 seconds" in found["hang"].output
        assert "It may have had its effect" not in found["hang"].output
        assert "It may have had its effect" in found["hang_in_thread"].output
        assert shop.ran == ["echo"], "the thread hangs on"
        shop.enough.set()
        shop.enough_in_thread.set()


async def test_heartbeats_are_sent_each_second_with_the_tools_status(caller: Caller, shop: Workshop) -> None:
    """Their absence means that the worker is gone."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(caller.call, "wait")
        await caller.until(lambda: len(caller.progress) > 1)
        assert caller.progress[-1].note == "waiting for the signal?"
        shop.go.set()


@pytest.mark.parametrize("tool", ["fail", "fail_in_thread"])
async def test_a_tool_s_own_text_passes_and_any_other_exception_does_not(caller: Caller, tool: str) -> None:
    """Any exception other than ToolError becomes a fixed sentence with a reference, and the worker continues."""
    assert "Told" in (await caller.call("fail", {"kind": "group"})).output
    kinds = ["secret", "exit"] + (["interrupt", "stop", "cancel", "self"] if tool == "fail" else ["leave"])
    for kind in kinds:
        outcome = await caller.call(tool, {"kind": kind})
        assert outcome.status == "error"
        assert outcome.output.startswith(
            f"{tool} failed unexpectedly. The log has the details under incident_"
        )
        assert "hunter2" not in outcome.output
    assert (await caller.call("fail", {"kind": "told"})).output == "The moon is down. Try the sun."
    assert (await caller.call("echo", {"text": "x"})).output == "x"


async def test_output_that_is_not_text_is_refused(caller: Caller) -> None:
    """A number or nothing is an error; a lone surrogate is replaced, for no message can carry it."""
    assert "returned int instead of text" in (await caller.call("number")).output
    assert "returned NoneType instead of text" in (await caller.call("nothing")).output
    assert (await caller.call("surrogate")).output == "a?b"


async def test_a_call_can_be_cancelled_wherever_it_runs(caller: Caller, shop: Workshop) -> None:
    """The caller gets a cancelled outcome, the ledger has it, and a repeat does not run the tool again."""
    async with anyio.create_task_group() as tasks:
        found: list[ToolOutcome] = []

        async def waiting() -> None:
            found.append(await caller.call("wait", key="call_c"))

        tasks.start_soon(waiting)
        await caller.until(lambda: bool(shop.ran))
        await caller.cancel("call_c", "the person said stop")
        await caller.until(lambda: bool(found))
        assert found[0].status == "unknown"
        assert "wait was stopped before it ended: the person said stop." in found[0].output
        assert "It may have had its effect" in found[0].output
        again = await caller.call("wait", key="call_c")
        assert (again.output, again.repeated) == (found[0].output, True)
        assert shop.ran == ["wait"]


# The ledger ---------------------------------------------------------------------------------------------------


async def test_a_repeat_of_a_finished_call_returns_what_is_recorded(caller: Caller, shop: Workshop) -> None:
    """The effect happens once; the ledger has a start and an end."""
    first = await caller.call("note", {"text": "x"}, key="call_a")
    again = await caller.call("note", {"text": "x"}, key="call_a")
    assert (first.status, first.output, first.repeated) == ("ok", "noted x", False)
    assert (again.status, again.output, again.repeated) == ("ok", "noted x", True)
    assert shop.ran == ["x"]
    assert [type(record) for record in await caller.records("call_a")] == [EffectStarted, EffectFinished]


async def test_a_read_has_no_start_in_the_ledger(caller: Caller) -> None:
    """It may run again after a crash, so only its result is kept."""
    await caller.call("echo", {"text": "x"}, key="call_r")

    async def recorded() -> bool:
        return [type(record) for record in await caller.records("call_r")] == [EffectFinished]

    await caller.until(recorded)
    assert (await caller.call("echo", {"text": "x"}, key="call_r", again=True)).repeated


async def test_a_refused_call_leaves_no_record(caller: Caller) -> None:
    """A call that did not run may be sent again under the same key, for instance with an approval."""
    assert (await caller.call("note", {}, key="call_b")).status == "error"
    assert await caller.records("call_b") == []
    assert (await caller.call("note", {"text": "x"}, key="call_b")).status == "ok"


async def test_a_repeated_request_joins_the_running_call(caller: Caller, shop: Workshop) -> None:
    """Two askers, one effect, one outcome; under the same key another call is refused, and another conversation."""
    found: list[ToolOutcome] = []

    async def one() -> None:
        found.append(await caller.call("wait", key="call_j"))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(one)
        await caller.until(lambda: bool(shop.ran))
        with pytest.raises(RemoteFault, match="conflict"):
            await caller.call("note", {"text": "x"}, key="call_j")
        with pytest.raises(RemoteFault, match="conflict"):
            await caller.call("wait", key="call_j", conversation="conv_2")
        shop.go.set()
    assert shop.ran == ["wait"]
    assert {outcome.output for outcome in found} == {"went on"}


async def test_writes_to_one_path_run_one_after_the_other(caller: Caller, shop: Workshop) -> None:
    """This holds for any spelling of the path; other paths are not delayed (conflict C41)."""
    async with anyio.create_task_group() as tasks:
        for path in ("a/b", "a//b", "./a/b", "a/./b"):
            tasks.start_soon(caller.call, "touch", {"path": path})
    assert shop.most == 1
    async with anyio.create_task_group() as tasks:
        for path in ("a", "b"):
            tasks.start_soon(caller.call, "touch", {"path": path})
        with anyio.fail_after(60):
            await shop.together.wait()


async def test_concurrent_edits_of_one_file_lose_nothing(caller: Caller) -> None:
    """Twenty replacements at once all arrive."""
    await caller.call("write_file", {"path": "a", "content": "".join(f"<{n}>" for n in range(20))})
    async with anyio.create_task_group() as tasks:
        for n in range(20):
            arguments = {"path": "a", "find": f"<{n}>", "replace": f"[{n}]"}
            tasks.start_soon(caller.call, "replace_in_file", arguments)
    assert (caller.workspace / "a").read_text() == "".join(f"[{n}]" for n in range(20))


async def test_without_a_ledger_only_reads_run(tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An effect that cannot be recorded must not happen; for a call requested before the outage the outcome is
    unknown."""
    shop = Workshop()
    async with tools(shop) as caller:
        assert (await caller.call("note", {"text": "before"})).status == "ok"
        monkeypatch.setattr(ledger, "PATIENT_TIMEOUT", 1.0)
        await request_with_retry(caller.bus.link, "STREAM.DELETE.EFFECT", {})
        refused = await caller.call("note", {"text": "x"})
        assert refused.status == "error"
        assert refused.output.startswith("note was not run, because its start cannot be recorded now")
        refused = await caller.call("note", {"text": "x"}, again=True)
        assert refused.status == "unknown"
        assert refused.output.startswith("note was not run now, and it may have run before")
        assert shop.ran == ["before"]
        assert (await caller.call("echo", {"text": "x"})).output == "x"


# Guards -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "../other/config.json", "/etc/passwd", "~/x", "out", "out/x", "a/../../x",
        ".env", "auth.json", "x/id_rsa", "x/id_ed25519", ".ssh/config", ".aws/credentials", ".ENV",
    ],
)  # fmt: skip
async def test_hostile_paths_are_refused_and_nothing_runs(
    caller: Caller, shop: Workshop, tmp_path: Path, path: str
) -> None:
    """MB-T6 and MB-T7, by the path stage, before any tool."""
    caller.workspace.mkdir(parents=True)
    (caller.workspace / "out").symlink_to(tmp_path)
    for tool, arguments in (
        ("touch", {"path": path}),
        ("read_file", {"path": path}),
        ("write_file", {"path": path, "content": "x"}),
        ("move_file", {"source": "a", "target": path}),
    ):
        key = new_id("call")
        outcome = await caller.call(tool, arguments, key=key)
        assert outcome.status == "error"
        assert await caller.records(key) == []
    assert shop.most == 0


PROGRAMS = {"permissions.allow_shell": True, "plugins.disabled": ["sandbox"]}
"""Blocks may run programs; not in the sandbox that is bundled, tests bring their own."""


async def test_programs_need_a_sandbox(tools: Any) -> None:
    """Without one a tool with the effect exec is refused with what to install; with one it runs."""
    shop = Workshop()
    async with tools(shop, config=PROGRAMS) as caller:
        refused = await caller.call("execute", {"command": "ls"})
        assert refused.status == "error"
        assert "only in a sandbox" in refused.output
        assert not shop.ran
    broken, working = Box("broken", "Install bubblewrap."), Box("working", None)
    async with tools(shop, broken, config=PROGRAMS) as caller:
        assert "broken: Install bubblewrap." in (await caller.call("execute", {"command": "ls"})).output
    async with tools(shop, broken, working, config=PROGRAMS) as caller:
        assert (await caller.call("execute", {"command": "ls"})).status == "ok"


class Ran(SandboxProcess):
    """A program that runs as any other does."""

    def __init__(self, process: Process) -> None:
        assert process.stdin and process.stdout and process.stderr
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr
        self._process = process

    async def wait(self) -> int | None:
        return await self._process.wait()

    async def kill(self, why: str = "killed") -> None:
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


class Box(trunkline.Sandbox):
    """A sandbox that shuts nothing in."""

    def __init__(self, name: str, reason: str | None) -> None:
        self.name = name
        self.reason = reason

    @trunkline.hookimpl
    def trunkline_sandboxes(self) -> list[trunkline.Sandbox]:
        return [self]

    async def unavailable(self) -> str | None:
        return self.reason

    async def start_program(self, request: ProgramRequest) -> SandboxProcess:
        self.request = request
        return Ran(await anyio.open_process(request.argv))


class Gate:
    """Asks about every note."""

    stage: Stage = "gate"

    @trunkline.hookimpl
    def trunkline_tool_middleware(self) -> list[Any]:
        return [self]

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        if invocation.spec.name != "note" or invocation.approved == invocation.call_hash:
            return await proceed(invocation)
        return ToolOutcome(call="", status="approval", question=f"Note {invocation.arguments['text']}?")


async def test_an_approval_is_requested_and_bound_to_the_call(tools: Any) -> None:
    """Parked first, run with its approval, refused with the approval of another call."""
    shop = Workshop()
    async with tools(shop, Gate()) as caller:
        asked = await caller.call("note", {"text": "x"}, key="call_p")
        assert (asked.status, asked.question) == ("approval", "Note x?")
        assert not shop.ran
        other = await caller.call("note", {"text": "y"}, key="call_q", approved=asked.call_hash)
        assert other.status == "error"
        assert "approval is for another call" in other.output
        assert not shop.ran
        done = await caller.call("note", {"text": "x"}, key="call_p", approved=asked.call_hash)
        assert (done.status, shop.ran) == ("ok", ["x"])


# Tool sources -------------------------------------------------------------------------------------------------

DICE = '''
import trunkline

@trunkline.tool(effect="read")
def roll(sides: int = 6) -> str:
    """Roll a die."""
    return f"{FIRST} of {sides}"

@trunkline.hookimpl
def trunkline_tools():
    yield roll
'''

MANIFEST = """
{"name": "count", "description": "Counts.",
 "command": ["sh", "-c", "read -r line; case $line in *fail*) echo it broke >&2; exit 2;; esac; echo \\"ran $line\\""],
 "parameters": {"type": "object", "properties": {"text": {"type": "string"}, "file_path": {"type": "string"}}}}
"""


async def test_an_added_tool_file_is_loaded_and_a_removed_one_unloaded(tools: Any, tmp_path: Path) -> None:
    """SWAP-3, and a changed file counts at once; all without a restart."""
    folder = tmp_path / "sources"
    folder.mkdir()
    async with tools(Workshop(), config={"runtime.tool_sources": [str(folder)]}) as caller:
        before = await caller.catalogue()
        assert "roll" not in await caller.names()
        (folder / "dice.py").write_text(DICE.replace("{FIRST}", "1"))
        assert "roll" in await caller.names()
        assert (await caller.catalogue(version=before.version)).tools is not None
        assert (await caller.call("roll", {"sides": "8"})).output == "1 of 8"
        (folder / "dice.py").write_text(DICE.replace("{FIRST}", "2"))
        assert (await caller.call("roll")).output == "2 of 6"
        (folder / "dice.py").write_text("syntax error here")
        assert "roll" not in await caller.names()
        assert "echo" in await caller.names()
        (folder / "dice.py").unlink()
        assert "no tool called 'roll'" in (await caller.call("roll")).output
        assert await caller.catalogue() == before


async def test_a_program_with_a_manifest_is_a_tool_that_runs_in_the_sandbox(
    tools: Any, tmp_path: Path
) -> None:
    """Its arguments go to standard input; a failing exit is an error; its paths are checked; no sandbox, no run."""
    folder = tmp_path / "sources" / "count"
    folder.mkdir(parents=True)
    (folder / "tool.json").write_text(MANIFEST)
    config = {"runtime.tool_sources": [str(folder.parent)], **PROGRAMS}
    async with tools(config=config) as caller:
        assert "only in a sandbox" in (await caller.call("count", {"text": "a b"})).output
    box = Box("box", None)
    async with tools(box, config={**config, "permissions.max_timeout": 7.0}) as caller:
        spec = next(spec for spec in (await caller.catalogue()).tools if spec.name == "count")
        assert (spec.source, spec.effect, spec.paths) == ("cli:count", "exec", ("file_path",))
        assert (
            unwrap_tool_result((await caller.call("count", {"text": "a b"})).output) == 'ran {"text":"a b"}\n'
        )
        assert (box.request.limits.timeout, box.request.limits.network) == (7.0, False)
        assert box.request.tool == "count"
        assert (
            "exit code 2. Its error output: it broke" in (await caller.call("count", {"text": "fail"})).output
        )
        assert (await caller.call("count", {"file_path": "../x"})).status == "error"
        (folder / "tool.json").write_text('{"name": "count"}')
        assert "count" not in await caller.names()


# Traces -------------------------------------------------------------------------------------------------------


async def test_a_call_has_a_span_with_the_genai_names(tools: Any) -> None:
    """``execute_tool {name}``, with the tool, the call and how it ended; arguments stay out of it."""
    from trunkline.contracts.workers.subjects import SPANS

    async with tools(Workshop()) as caller:
        await caller.call("echo", {"text": "a secret"}, key="call_t")
        found: list[Any] = []
        with anyio.fail_after(60):
            while not found:
                batches = [stored.data async for stored in caller.bus.history(SPANS)]
                spans = [span for batch in batches for span in batch.spans]
                found = [span for span in spans if span.name == "execute_tool echo" and not span.unfinished]
                await anyio.sleep(0.05)
        attributes = found[0].attributes
        assert attributes["gen_ai.operation.name"] == "execute_tool"
        assert attributes["gen_ai.tool.name"] == "echo"
        assert attributes["gen_ai.tool.call.id"] == "call_t"
        assert "a secret" not in str(attributes)
