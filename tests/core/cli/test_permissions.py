"""``trunkline permissions`` and ``trunkline audit``: the owner's commands, against a platform that runs."""

import json
import shutil
import socket
import tarfile
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from trunkline._util.untrusted_text import unwrap_tool_result
from trunkline.testing.platform import Platform

from .conftest import Cli, Run
from .terminal_actions import at_terminal, call

pytestmark = pytest.mark.anyio

PROGRAMS = {"permissions.allow_shell": True, "permissions.allow_network": True}


def answers(shown: str) -> dict[str, str]:
    return {line["what"]: line["answer"] for line in json.loads(shown)["lines"]}


async def test_permissions_are_shown_and_changed(running: Platform, cli: Cli) -> None:
    """They are shown in words and as JSON, with the rule behind each; a change applies at once, and comments in the
    file stay."""
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
    assert unwrap_tool_result((await call(running, "read_file", path=str(there))).output) == "theirs"
    denied = answers(await cli("permissions", "main", "--deny-shell", "--deny-network", "--plan", "--json"))
    assert (denied["run programs"], denied["reach other hosts with tools"]) == ("no", "no")
    assert denied["use tools that change something"] == "no"
    assert "--no-plan" in (await call(running, "write_file", path="x", content="y")).output
    log = [json.loads(line) for line in (await cli("audit", "--event", "permissions", "--json")).splitlines()]
    assert [entry["why"] for entry in log] == [
        "scope = workspace, allow_shell = true, approvals = none.",
        "allow_shell = false, allow_network = false, plan = true.",
    ]


async def test_an_unknown_block_has_no_permissions(running: Platform, cli: Cli) -> None:
    """An error with a hint; wrong values are wrong usage."""
    reported = await cli("permissions", "nobody", status=1)
    assert "There is no block nobody." in reported and "Known blocks: main." in reported
    assert "There is no block nobody." in await cli("permissions", "nobody", "--allow-shell", status=1)
    assert "max-timeout" in await cli("permissions", "main", "--max-timeout", "0", status=2)
    assert "There is no block nobody." in await cli("permissions", "nobody", "--god", "5", status=1)
    for words in (("--conversation", "conv_1"), ("--conversation", "conv_1", "--god", "0")):
        assert "--god or --host-network" in await cli("permissions", "main", *words, status=2)
    assert "is not a time" in await cli("audit", "--since", "yesterday", status=1)


async def test_cc_t13_god_mode_is_given_at_a_terminal_only(
    running: Platform, cli: Cli, environ: dict[str, str], tmp_path: Path
) -> None:
    """CC-T13: refused without a terminal or with another text; typed, it holds for its time and is in the audit log."""
    assert "can only be granted at a terminal" in await cli("permissions", "main", "--god", "5", status=1)
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
    assert unwrap_tool_result((await call(running, "read_file", path=str(secret))).output) == "far away"
    assert (await call(running, "read_file", path=str(running.home.token_file))).status == "error"
    assert (await call(running, "read_file", "other", path=str(secret))).status == "error"
    assert "God Mode for 5 minutes." in await cli("audit", "--event", "permissions")
    await cli("permissions", "main", "--god", "0")
    assert (await call(running, "read_file", path=str(secret))).status == "error"


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize("running", [PROGRAMS], indirect=True)
async def test_cc_t13_host_network_is_granted_at_a_terminal_only(
    running: Platform, cli: Cli, environ: dict[str, str]
) -> None:
    """CC-T13: a program that may use the network does not reach what listens on loopback. That is refused without a
    terminal; typed there it holds for its time, one block and one conversation, and is in the audit log."""
    assert "can only be granted at a terminal" in await cli(
        "permissions", "main", "--host-network", "5", status=1
    )
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

        async def delegated(*where: str) -> None:
            words = ("permissions", "main", "--host-network", "5", *where)
            status, screen = await anyio.to_thread.run_sync(at_terminal, environ, "host-network main", *words)
            assert status == 0 and "host-network main" in screen, screen

        assert not await reached()
        await delegated("--conversation", "conv_other")
        assert not await reached()
        await delegated()
        assert await reached() and not await reached("other")
        await cli("permissions", "main", "--host-network", "0")
        assert not await reached()
    log = await cli("audit", "--event", "permissions")
    assert "This machine's network for 5 minutes." in log and "was ended." in log


# The audit log ------------------------------------------------------------------------------------------------


async def test_every_decision_and_call_is_in_the_audit_log(running: Platform, cli: Cli) -> None:
    """Each entry has the caller, the decision with its rule, and the outcome; the log can be filtered, read as JSON,
    and found in memory's files."""
    await call(running, "write_file", path="a.md", content="x" * 5000)
    await call(running, "read_file", path="a.md")
    await call(running, "read_file", path="/etc/passwd")
    log = [json.loads(line) for line in (await cli("audit", "--block", "main", "--json")).splitlines()]
    reported = [
        (entry["event"], entry["tool"], entry.get("decision", ""), entry.get("status", "")) for entry in log
    ]
    assert reported == [
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


def test_an_unused_home_has_no_blocks(trunkline: Run) -> None:
    """The command reports this with the next step, as for any missing block; once there is a block, it shows the
    settings in force."""
    none = trunkline("permissions", "main")
    assert none.returncode == 1 and "There is no block main" in none.stderr and "none yet" in none.stderr
    assert trunkline("blocks", "list").returncode == 0
    shown = trunkline("permissions", "main").stdout.splitlines()
    choices = [line.split() for line in shown if line.endswith(" default")]
    assert ["approvals", "some", "default"] in choices and ["scope", "block", "default"] in choices


def test_permissions_of_a_block_named_like_a_command(trunkline: Run) -> None:
    """``permissions BLOCK`` is short for ``permissions block BLOCK``, which any block's name fits."""
    assert trunkline("blocks", "create", "rules").returncode == 0
    assert "There are no rules" in trunkline("permissions", "rules").stdout
    long = trunkline("permissions", "block", "rules", "--deny-shell", "--json")
    assert json.loads(long.stdout)["block"] == "rules"
    assert trunkline("blocks", "list").returncode == 0
    short = trunkline("permissions", "--json", "main")
    assert short.stdout == trunkline("permissions", "block", "main", "--json").stdout
    assert "There is no block nobody" in trunkline("permissions", "nobody").stderr


def test_default_permissions_are_described_in_words(trunkline: Run) -> None:
    """In the list and as JSON, every setting has a value, and a setting implied by another names it."""
    assert trunkline("blocks", "list").returncode == 0
    plain = json.loads(trunkline("permissions", "main", "--json").stdout)
    chosen = {one["name"]: (one["value"], one["origin"]) for one in plain["choices"]}
    assert chosen["allow_shell"] == ("not permitted", "default") and chosen["scope"] == ("block", "default")
    assert plain["own"] == {} and all(one["value"] not in ("", "-") for one in plain["choices"])
    wide = trunkline("permissions", "main", "--scope", "system", "--max-timeout", "120")
    choices = [
        line.split("  ") for line in wide.stdout.splitlines() if line.endswith((" default", " block.toml"))
    ]
    shown = {words[0]: [word.strip() for word in words[1:] if word.strip()] for words in choices}
    assert shown["scope"] == ["system", "block.toml"] and shown["max_timeout"] == ["120", "block.toml"]
    assert shown["allow_shell"] == ["true, as the scope is system", "default"]


async def test_a_list_for_an_unknown_block_is_an_error(running: Platform, cli: Cli) -> None:
    """This holds for approvals, results and the audit log: the error lists the existing blocks. Audit entries of a
    deleted block are shown."""
    for words in (("approvals", "list"), ("results", "list"), ("audit",), ("audit", "--follow")):
        reported = await cli(*words, "--block", "mian", status=1)
        assert "There is no block mian." in reported and "Did you mean main?" in reported
    for kind in ("approvals", "results"):
        await cli(kind, "list", "--block", "main")
    await call(running, "read_file", "gone", path="x")
    assert "read_file" in await cli("audit", "--block", "gone")
