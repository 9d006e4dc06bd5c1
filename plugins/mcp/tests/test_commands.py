"""``trunkline mcp``: its output for a new user. The program runs on a separate home."""

import json
import subprocess
import sys
from pathlib import Path

from trunkline.testing.platform import clean_environ

NOWHERE = "http://127.0.0.1:9/mcp"


def cli(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "trunkline.cli.main", "mcp", *words],
        env={**clean_environ(), "TRUNKLINE_HOME": str(home)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_server_entry_without_command_or_address_is_refused(tmp_path):
    """Both ways, with the name that was given; each example is one that is taken."""
    done = cli(tmp_path, "add", "time", "--block", "garden")
    assert done.returncode == 1 and "time needs a command" in done.stderr
    first, second = done.stderr.split("For example: ")[1].strip().split(", or: ")
    assert "trunkline mcp add --block garden" in first and "--url" in second
    for example, more in ((first, ()), (second, ("--replace",))):
        assert cli(tmp_path, *example.split()[2:3], *more, *example.split()[3:]).returncode == 0


def test_the_list_reports_that_no_platform_runs(tmp_path):
    """It states the reason that the servers' states are unknown, and what to do, if any servers are configured."""
    assert "No platform" not in cli(tmp_path, "list").stderr
    cli(tmp_path, "add", "docs", "--url", NOWHERE)
    done = cli(tmp_path, "list")
    assert "not running" in done.stdout and "No platform runs" in done.stderr
    assert '"trunkline up"' in done.stderr and '"trunkline mcp test SERVER"' in done.stderr
    (server,) = json.loads(cli(tmp_path, "list", "--json").stdout)["servers"]
    assert server["state"] == "not running" and "No platform runs" in server["why"]


def test_testing_one_server_reports_only_that_server(tmp_path):
    """Log lines of the other servers, which a tools worker starts too, go into a file of the home."""
    for name, port in (("mine", 9), ("other", 19)):
        cli(tmp_path, "add", name, "--url", f"http://127.0.0.1:{port}/mcp")
    done = cli(tmp_path, "test", "mine")
    assert done.returncode == 1 and done.stdout == ""
    assert "mine cannot be used" in done.stderr and "other" not in done.stderr
    assert (tmp_path / "logs/mcp.log").stat().st_size


def test_an_unknown_server_is_reported_with_a_similar_name(tmp_path):
    """The name has a typing error, or lacks its block; this holds for every verb that takes a server."""
    cli(tmp_path, "add", "docs", "--url", NOWHERE)
    cli(tmp_path, "add", "files", "--block", "garden", "--url", NOWHERE)
    for verb, said, meant in (
        ("test", "dosc", "docs"),
        ("remove", "files", "garden/files"),
        ("login", "doc", "docs"),
    ):
        done = cli(tmp_path, verb, said)
        assert done.returncode == 1 and f"Did you mean {meant}?" in done.stderr and "mcp list" in done.stderr
