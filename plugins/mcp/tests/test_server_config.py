"""Which servers the files name: MN-F30's format, and everything that can be wrong with it (MN-T12)."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from trunkline_mcp.commands import group_of
from trunkline_mcp.health import server_check
from trunkline_mcp.server_config import load_servers

GOOD = {"command": "server", "args": ["--fast"]}


def write(home: Path, servers: Any, name: str = "mcp.json") -> None:
    file = home / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(servers if isinstance(servers, str) else json.dumps({"mcpServers": servers}))


def test_mn_t12_a_missing_file_is_not_an_error(tmp_path):
    """There are no servers then."""
    found = load_servers(tmp_path)
    assert (found.servers, found.problems) == ((), ())


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', '{"mcpServers": []}', "\x00", '{"mcpServers": 3}'])
def test_mn_t12_a_malformed_file_is_reported_and_the_others_are_used(tmp_path, text):
    """The error names the file and the fault; another block's servers are there."""
    write(tmp_path, text)
    write(tmp_path, {"files": GOOD}, "mcp/garden.json")
    found = load_servers(tmp_path)
    assert [server.identity for server in found.servers] == ["garden/files"]
    assert [problem.where for problem in found.problems] == [str(tmp_path / "mcp.json")]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "a command or a url"),
        ({"command": ""}, "a command or a url"),
        ({"command": 7}, "command has to be text"),
        ({"command": ["npx", "server"]}, "command has to be text"),
        ({"command": "x", "args": "--fast"}, "args has to be a list"),
        ({"command": "x", "args": [{}]}, "args has to be a list"),
        ({"command": "x", "args": ["a\0b"]}, "NUL"),
        ({"command": "x", "url": "https://a"}, "keep one"),
        ({"url": "ftp://a"}, "https://"),
        ({"url": "https://a", "type": "sse"}, "no longer supported"),
        ({"command": "x", "env": ["A=1"]}, "env has to be an object"),
        ({"command": "x", "env": {"A": {"file": "x"}}}, "a value is text"),
        ({"command": "x", "trust": "very"}, "trust is"),
        ({"command": "x", "network": "yes"}, 'network is true, false, or "host"'),
        ({"command": "x", "network": "loopback"}, '"host" for this machine'),
        ({"command": "x", "readable": ["notes"]}, "absolute path"),
        ({"command": "x", "timeout": 0}, "timeout is a number"),
        ({"command": "x", "protocol": "1"}, "protocol is one of"),
        ("npx", "has to be an object"),
    ],
)
def test_mn_t12_a_bad_entry_is_skipped_and_reported(tmp_path, entry, said):
    """The reason is in the problem; the entry beside it is used."""
    write(tmp_path, {"bad": entry, "good": GOOD})
    found = load_servers(tmp_path)
    assert [server.name for server in found.servers] == ["good"]
    (problem,) = found.problems
    assert problem.fatal and problem.where == "mcp.json: bad" and said in problem.what


@pytest.mark.parametrize("name", ["", "a b", "../x", "a" * 33, "a/b", "x__y\n"])
def test_mn_t12_an_invalid_name_is_reported(tmp_path, name):
    """A server's name becomes part of its tools' names, and of files."""
    write(tmp_path, {name: GOOD})
    assert load_servers(tmp_path).servers == () and len(load_servers(tmp_path).problems) == 1


def test_mn_t12_numbers_become_text_and_disabled_servers_are_not_used(tmp_path):
    """An int in env is its text; a disabled server is known and not used."""
    write(
        tmp_path,
        {"a": {"command": "x", "args": [3], "env": {"N": 5, "B": True}}, "b": {**GOOD, "disabled": True}},
    )
    found = load_servers(tmp_path)
    (active,) = found.enabled
    assert active.command == ("x", "3")
    assert {name: one.reveal({}) for name, one in active.env.items()} == {"N": "5", "B": "true"}


@pytest.mark.parametrize("mistake", ["disbled", "netwrok", "trsut", "readble"])
def test_a_misspelled_key_prevents_the_start_of_the_server(tmp_path, mistake):
    """A misspelled restriction would be ignored otherwise; the reason names the intended key."""
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "x", mistake: True}}}))
    found = load_servers(tmp_path)
    assert not found.servers and "did you mean" in found.problems[0].what


def test_a_secret_in_the_file_and_an_unknown_key_are_only_reported(tmp_path):
    """Neither keeps it from running; neither is shown."""
    write(tmp_path, {"a": {**GOOD, "env": {"API_TOKEN": "tk-123", "OTHER": "$FINE"}, "autoApprove": ["x"]}})
    found = load_servers(tmp_path)
    assert len(found.enabled) == 1 and not any(problem.fatal for problem in found.problems)
    assert [problem.what.split()[0] for problem in found.problems] == ["'autoApprove'", "env"]
    assert "tk-123" not in str(found.problems)


@pytest.mark.anyio
async def test_doctor_reports_only_problems(tmp_path):
    """One check: fine without servers, an error with the reason for an entry that is left out."""
    assert (await server_check(tmp_path)()).status == "ok"
    write(tmp_path, {"bad": {"args": []}, "good": GOOD})
    result = await server_check(tmp_path)()
    assert result.status == "error" and "mcp.json: bad: it needs a command or a url" in result.summary


@pytest.mark.anyio
async def test_doctor_reports_a_missing_key_and_servers_without_a_worker(tmp_path, monkeypatch):
    """Before anything runs: which variable of which server is not set, never a value; and how to try a server."""
    monkeypatch.delenv("FAR_KEY", raising=False)
    monkeypatch.setenv("NEAR_KEY", "tk-123")
    headers = {"Authorization": "Bearer ${FAR_KEY}", "X": "$NEAR_KEY"}
    write(tmp_path, {"far": {"url": "https://example.org/mcp", "headers": headers}, "good": GOOD})
    result = await server_check(tmp_path)()
    assert (result.status, "far: FAR_KEY is not set" in result.summary) == ("warning", True)
    assert (
        "NEAR_KEY" not in result.summary
        and "tk-123" not in str(result)
        and "trunkline mcp list" in result.hint
    )
    monkeypatch.setenv("FAR_KEY", "x")
    result = await server_check(tmp_path)()
    assert result.status == "ok" and result.summary.startswith("2 MCP servers; no tools worker runs here")
    assert "trunkline mcp test" in result.summary


def run(home: Path, *words: str) -> Any:
    return CliRunner().invoke(group_of(home), list(words))


def test_add_writes_an_entry_and_remove_deletes_it(tmp_path):
    """Secrets are references; the file is the owner's alone; keys of other programs stay."""
    (tmp_path / "mcp.json").write_text('{"theirs": 1, "mcpServers": {"old": {"command": "x"}}}')
    words = ("add", "--env-from", "TOKEN=GH", "--network", "brave", "npx", "-y", "server", "--verbose")
    assert run(tmp_path, *words).exit_code == 0
    file = json.loads((tmp_path / "mcp.json").read_text())
    assert file["theirs"] == 1 and {*file["mcpServers"]} == {"old", "brave"}
    assert file["mcpServers"]["brave"] == {
        "command": "npx", "args": ["-y", "server", "--verbose"], "env": {"TOKEN": {"env": "GH"}}, "network": True,
    }  # fmt: skip
    assert stat.S_IMODE((tmp_path / "mcp.json").stat().st_mode) == 0o600
    assert run(tmp_path, "add", "brave", "y").exit_code == 1
    assert run(tmp_path, "remove", "brave").exit_code == 0
    assert [server.name for server in load_servers(tmp_path).servers] == ["old"]
    assert run(tmp_path, "remove", "brave").exit_code == 1


def test_the_host_network_is_a_separate_option(tmp_path):
    """``network`` leads to other hosts; only what asks for ``host`` meets what listens on loopback."""
    assert run(tmp_path, "add", "--network", "out", "y").exit_code == 0
    assert run(tmp_path, "add", "--host-network", "here", "y").exit_code == 0
    assert run(tmp_path, "add", "none", "y").exit_code == 0
    found = {one.name: (one.network, one.host_network) for one in load_servers(tmp_path).servers}
    assert found == {"out": (True, False), "here": (True, True), "none": (False, False)}


def test_a_server_can_belong_to_one_block(tmp_path):
    """It is in a file of its own, and is called after the block."""
    assert (
        run(tmp_path, "add", "--block", "garden", "--url", "https://example.org/mcp", "docs").exit_code == 0
    )
    (server,) = load_servers(tmp_path).servers
    assert (server.identity, server.source, server.block) == ("garden/docs", "mcp:garden/docs", "garden")
    listed = json.loads(run(tmp_path, "list", "--json").output)
    assert [row["state"] for row in listed["servers"]] == ["not running"]
    assert run(tmp_path, "remove", "garden/docs").exit_code == 0
    assert load_servers(tmp_path).servers == ()


def test_an_unusable_server_is_not_added(tmp_path):
    """The file stays as it was."""
    assert run(tmp_path, "add", "x").exit_code != 0
    assert run(tmp_path, "add", "--block", "../etc", "x", "y").exit_code != 0
    assert run(tmp_path, "add", "--url", "ftp://x", "x").exit_code != 0
    assert not (tmp_path / "mcp.json").exists()
