"""``trunkline permissions`` and ``trunkline audit``: the owner's commands, against a platform that runs."""

import json
import os
import pty
import select
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from trunkline.cli.owned.ruling import insist_on_sense
from trunkline.errors import ConfigError
from trunkline.messages.memory import WriteManyMemory
from trunkline.messages.policies import Conditions, Policy
from trunkline.messages.tools import CallTool, ToolOutcome
from trunkline.subjects import CALL_TOOL, MEMORY_WRITE_MANY
from trunkline.testing.platform import Platform, platform
from trunkline_bus import new_id

pytestmark = pytest.mark.anyio

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Cli = Callable[..., Any]


PROGRAMS = {"permissions.allow_shell": True, "permissions.allow_network": True}


@pytest.fixture
async def running(home: Path, request: pytest.FixtureRequest) -> AsyncIterator[Platform]:
    config = getattr(request, "param", {})
    async with platform(home, workers=("memory", "tools", "gateway"), config=config) as found:
        yield found


@pytest.fixture
def cli(trunkline: Run) -> Cli:
    """Runs the program beside the platform; its standard output, or its standard error when it fails."""

    async def run(*arguments: str, status: int = 0) -> str:
        done = await anyio.to_thread.run_sync(lambda: trunkline(*arguments))
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout if status == 0 else done.stderr

    return run


async def call(running: Platform, name: str, block: str = "main", **arguments: Any) -> ToolOutcome:
    request = CallTool(
        call=new_id("call"), name=name, arguments=arguments, block=block, conversation="conv_1", turn="turn_1",
        actor="owner",
    )  # fmt: skip
    with anyio.fail_after(30):
        async with running.bus.call_streaming(CALL_TOOL, request, idle_timeout=60) as replies:
            async for reply in replies:
                if isinstance(reply, ToolOutcome):
                    return reply
    raise AssertionError("no outcome")


def answers(shown: str) -> dict[str, str]:
    return {line["what"]: line["answer"] for line in json.loads(shown)["lines"]}


async def test_permissions_are_shown_and_changed(running: Platform, cli: Cli) -> None:
    """In words and as JSON, with the rule that says so; a change counts at once, and comments in the file stay."""
    shown = await cli("permissions", "main")
    assert "run programs" in shown and "nothing permits it" in shown and "trunkline.toml" not in shown
    assert answers(await cli("permissions", "main", "--json"))["use tools that change something"] == "asks"
    file = running.home.memory / "blocks/main/block.toml"
    before = file.read_text()
    changed = answers(
        await cli(
            "permissions", "main", "--allow-shell", "--scope", "workspace", "--approvals", "none", "--json"
        )
    )
    assert (changed["run programs"], changed["open files of other blocks' folders"]) == ("yes", "yes")
    assert changed["open files of the whole system"] == "no"
    assert before.strip() in file.read_text() and 'scope = "workspace"' in file.read_text()
    await call(running, "write_file", "other", path="x", content="theirs")
    there = running.home.workspace("other") / "x"
    assert (await call(running, "read_file", path=str(there))).output == "theirs"
    denied = answers(await cli("permissions", "main", "--deny-shell", "--deny-network", "--plan", "--json"))
    assert (denied["run programs"], denied["reach other hosts with tools"]) == ("no", "no")
    assert denied["use tools that change something"] == "no"
    assert "--no-plan" in (await call(running, "write_file", path="x", content="y")).output
    log = [json.loads(line) for line in (await cli("audit", "--event", "permissions", "--json")).splitlines()]
    assert [entry["why"] for entry in log] == [
        "scope = workspace, allow_shell = true, approvals = none.",
        "allow_shell = false, allow_network = false, plan = true.",
    ]


async def test_a_block_that_is_not_there_has_no_permissions(running: Platform, cli: Cli) -> None:
    """An error with a hint; wrong values are wrong usage."""
    told = await cli("permissions", "nobody", status=1)
    assert "There is no block nobody." in told and "There are: main." in told
    assert "There is no block nobody." in await cli("permissions", "nobody", "--allow-shell", status=1)
    assert "max-timeout" in await cli("permissions", "main", "--max-timeout", "0", status=2)
    assert "is no time" in await cli("audit", "--since", "yesterday", status=1)


async def test_cc_t13_god_mode_is_given_at_a_terminal_only(
    running: Platform, cli: Cli, environ: dict[str, str], tmp_path: Path
) -> None:
    """CC-T13: refused without a terminal or with another text; typed, it holds for its time and is in the audit log."""
    assert "at a terminal only" in await cli("permissions", "main", "--god", "5", status=1)
    status, screen = await anyio.to_thread.run_sync(
        at_terminal, environ, "yes", "permissions", "main", "--god", "5"
    )
    assert status == 1 and "nothing was changed" in screen
    assert answers(await cli("permissions", "main", "--json"))["run programs"] == "no"
    secret = tmp_path / "far"
    secret.write_text("far away")
    assert (await call(running, "read_file", path=str(secret))).status == "error"
    typed = "god main"
    status, screen = await anyio.to_thread.run_sync(
        at_terminal, environ, typed, "permissions", "main", "--god", "5"
    )
    assert status == 0, screen
    assert set(answers(await cli("permissions", "main", "--json")).values()) == {"yes"}
    assert (await call(running, "read_file", path=str(secret))).output == "far away"
    assert (await call(running, "read_file", path=str(running.home.token_file))).status == "error"
    assert (await call(running, "read_file", "other", path=str(secret))).status == "error"
    assert "God Mode for 5 minutes." in await cli("audit", "--event", "permissions")
    await cli("permissions", "main", "--god", "0")
    assert (await call(running, "read_file", path=str(secret))).status == "error"


async def test_a_denial_is_added_listed_and_removed_in_one_command_each(
    running: Platform, cli: Cli, environ: dict[str, str]
) -> None:
    """It counts at once, is in memory and in the audit log; what lets agents do more is agreed to at a terminal."""
    await call(running, "memory_write", path="/diary/a.md", content="hidden")
    denied = json.loads(
        await cli("policies", "add", "deny", "*", "read", "memory:/diary/*", "--note", "mine", "--json")
    )
    assert denied["id"] == "deny-memory-diary"
    assert (await call(running, "memory_read", path="/diary/a.md")).status == "error"
    again = await cli("policies", "add", "deny", "*", "read", "memory:/diary/*")
    assert again.startswith("deny-memory-diary-2: deny * to read memory:/diary/*")
    listed = await cli("policies", "list", "--block", "main")
    assert "deny-memory-diary  " in listed and "(mine)" in listed
    (file,) = (running.home.memory / "policies").glob("deny-memory-diary.json")
    assert json.loads(file.read_text())["created_by"] == "owner"
    for words in (("remove", denied["id"]), ("add", "allow", "*", "*", "*")):
        assert "at a terminal only" in await cli("policies", *words, status=1)
    for id in (denied["id"], "deny-memory-diary-2"):
        status, screen = await anyio.to_thread.run_sync(at_terminal, environ, "y", "policies", "remove", id)
        assert status == 0, screen
    assert (await call(running, "memory_read", path="/diary/a.md")).output.count("hidden")
    status, screen = await anyio.to_thread.run_sync(
        at_terminal, environ, "", "policies", "add", "allow", "block:main", "*", "*"
    )
    assert status == 1 and "Nothing was changed" in screen
    log = [json.loads(line) for line in (await cli("audit", "--event", "permissions", "--json")).splitlines()]
    assert log[0]["why"].startswith("deny-memory-diary: deny * to read") and len(log) == 4


async def test_a_rule_that_would_never_count_is_refused(running: Platform, cli: Cli, trunkline: Run) -> None:
    """Each error says what would be right; a file that is no rule is named, so that it can be removed."""
    assert "would ever meet" in await cli("policies", "add", "deny", "*", "read", "diary/*", status=1)
    for name in ("fs_read", "native:trunkline-files:fs_read"):
        refused = await cli("policies", "add", "deny", "*", "*", f"tool:{name}", status=1)
        assert "another name" in refused and "tool:read_file, " in refused
    wish = WriteManyMemory(files={"policies/odd.json": "{"}, actor="owner")
    await running.bus.call(MEMORY_WRITE_MANY, wish)
    assert (await call(running, "read_file", path="x")).output.count("odd.json")
    done = await anyio.to_thread.run_sync(lambda: trunkline("policies", "list", "--json"))
    assert done.returncode == 1 and "odd.json" in json.loads(done.stdout)["policies"][0]["broken"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"subject": "block:No Such"}, "names no block"),
        ({"subject": "agent"}, "nobody"),
        ({"subject": "type:agents"}, "nobody"),
        ({"resource": "memory:diary"}, "would ever meet"),
        ({"resource": "files:home"}, "would ever meet"),
        ({"id": "god-x"}, "given by Trunkline"),
        ({"id": "../x"}, "no rule"),
        ({"conditions": Conditions(time_window="8-20")}, "no rule"),
        ({"conditions": Conditions(days=("someday",))}, "no rule"),  # type: ignore[arg-type]
        ({"conditions": Conditions(zone="Nowhere/Town")}, "time zone"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said(wrong: dict[str, Any], told: str) -> None:
    """Whoever denies something must not be left in error that it is denied."""
    right: dict[str, Any] = {"subject": "*", "resource": "tool:*", "action": "read", "effect": "deny"}
    insist_on_sense(Policy(**right))
    with pytest.raises(ConfigError, match=told):
        insist_on_sense(Policy(**{**right, **wrong}))


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize("running", [PROGRAMS], indirect=True)
async def test_cc_t13_the_machine_s_network_is_lent_at_a_terminal_only(
    running: Platform, cli: Cli, environ: dict[str, str]
) -> None:
    """CC-T13: a program that may use the network does not reach what listens on loopback. That is refused without a
    terminal; typed there it holds for its time, one block and one conversation, and is in the audit log."""
    assert "at a terminal only" in await cli("permissions", "main", "--host-network", "5", status=1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = (
            f"import socket; socket.create_connection({server.getsockname()!r}, 5); print('was reached')"
        )

        async def reached(block: str = "main") -> bool:
            command = ["python3", "-c", connect]
            return (
                "was reached"
                in (await call(running, "execute_command", block, command=command, network=True)).output
            )

        async def lent(*where: str) -> None:
            words = ("permissions", "main", "--host-network", "5", *where)
            status, screen = await anyio.to_thread.run_sync(at_terminal, environ, "host-network main", *words)
            assert status == 0 and "host-network main" in screen, screen

        assert not await reached()
        await lent("--conversation", "conv_other")
        assert not await reached()
        await lent()
        assert await reached() and not await reached("other")
        await cli("permissions", "main", "--host-network", "0")
        assert not await reached()
    log = await cli("audit", "--event", "permissions")
    assert "This machine's network for 5 minutes." in log and "was ended." in log


def at_terminal(environ: dict[str, str], typed: str, *arguments: str) -> tuple[int, str]:
    """Run the program at a terminal of its own and type a line when it asks."""
    keys, screen = pty.openpty()
    program = [sys.executable, "-m", "trunkline.cli.main", *arguments]
    process = subprocess.Popen(
        program, env=environ, stdin=screen, stdout=screen, stderr=screen, close_fds=True
    )
    os.close(screen)
    shown, sent, deadline = "", False, time.monotonic() + 50
    while time.monotonic() < deadline:
        if select.select([keys], [], [], 0.2)[0]:
            try:
                shown += os.read(keys, 4096).decode(errors="replace")
            except OSError:
                break
        elif process.poll() is not None:
            break
        if not sent and ("Type " in shown or "[y/N]" in shown):
            os.write(keys, f"{typed}\n".encode())
            sent = True
    os.close(keys)
    return process.wait(timeout=60), shown


# The audit log ------------------------------------------------------------------------------------------------


async def test_every_decision_and_call_is_in_the_audit_log(running: Platform, cli: Cli) -> None:
    """Who wanted what, what was decided by which rule, and how it ended; filtered, as JSON, and in memory's files."""
    await call(running, "write_file", path="a.md", content="x" * 5000)
    await call(running, "read_file", path="a.md")
    await call(running, "read_file", path="/etc/passwd")
    log = [json.loads(line) for line in (await cli("audit", "--block", "main", "--json")).splitlines()]
    told = [
        (entry["event"], entry["tool"], entry.get("decision", ""), entry.get("status", "")) for entry in log
    ]
    assert told == [
        ("decision", "write_file", "allowed", ""),
        ("call", "write_file", "", "ok"),
        ("call", "read_file", "", "ok"),
        ("decision", "read_file", "denied", ""),
        ("call", "read_file", "", "error"),
    ]
    assert log[1]["arguments"]["path"] == "a.md" and len(log[1]["arguments"]["content"]) < 300
    assert "preset:write" in log[0]["by"] and log[1]["actor"] == "owner" and "output" not in log[2]
    assert len((await cli("audit", "--decision", "denied", "--json")).splitlines()) == 1
    assert "outside of the workspaces" in await cli("audit", "--decision", "denied")
    archive = running.home.path.parent / "memory.tar"
    await cli("memory", "export", str(archive))
    (day,) = (running.home.memory / "audit").glob("*.jsonl")
    assert [json.loads(line) for line in day.read_text().splitlines()] == log
    with tarfile.open(archive) as tar:
        assert any(name.endswith(f"audit/{day.name}") for name in tar.getnames())
    again = [json.loads(line) for line in (await cli("audit", "--block", "main", "--json")).splitlines()]
    assert again == log


def test_a_home_that_nothing_was_started_on_has_no_blocks_yet(trunkline: Run) -> None:
    """It says so and how to begin, as of any block that is not there; once there is one, it shows what counts."""
    none = trunkline("permissions", "main")
    assert none.returncode == 1 and "There is no block main" in none.stderr and "none yet" in none.stderr
    assert trunkline("blocks", "list").returncode == 0
    shown = trunkline("permissions", "main").stdout.splitlines()
    choices = [line.split() for line in shown if line.endswith(" default")]
    assert ["approvals", "some", "default"] in choices and ["scope", "block", "default"] in choices
