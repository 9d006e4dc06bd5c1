"""``trunkline permissions rules``: adding and removing the owner's rules by command, and the reports of mistakes."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

import trunkline as face
from trunkline.cli._support.rules import check_rule
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.policies.messages import Conditions, Policy
from trunkline.errors import ConfigError
from trunkline.testing.platform import Platform, platform

from .conftest import Cli, Run
from .terminal_actions import at_terminal, call

pytestmark = pytest.mark.anyio


async def test_a_denial_is_added_listed_and_removed_in_one_command_each(
    running: Platform, cli: Cli, environ: dict[str, str]
) -> None:
    """It counts at once, is in memory and in the audit log; what lets agents do more is agreed to at a terminal."""
    await call(running, "memory_write", path="/diary/a.md", content="hidden")
    denied = json.loads(
        await cli(
            "permissions", "rules", "add", "deny", "*", "read", "memory:/diary/*", "--note", "mine", "--json"
        )
    )
    assert denied["id"] == "deny-memory-diary"
    assert (await call(running, "memory_read", path="/diary/a.md")).status == "error"
    again = await cli("permissions", "rules", "add", "deny", "*", "read", "memory:/diary/*")
    assert again.startswith("deny-memory-diary-2: deny * to read memory:/diary/*")
    listed = await cli("permissions", "rules", "list", "--block", "main")
    assert "deny-memory-diary  " in listed and "(mine)" in listed
    (file,) = (running.home.memory / "policies").glob("deny-memory-diary.json")
    assert json.loads(file.read_text())["created_by"] == "owner"
    for words in (("remove", denied["id"]), ("add", "allow", "*", "*", "*")):
        assert "needs a terminal" in await cli("permissions", "rules", *words, status=1)
    for id in (denied["id"], "deny-memory-diary-2"):
        status, screen = await anyio.to_thread.run_sync(
            at_terminal, environ, "y", "permissions", "rules", "remove", id
        )
        assert status == 0, screen
    assert (await call(running, "memory_read", path="/diary/a.md")).output.count("hidden")
    status, screen = await anyio.to_thread.run_sync(
        at_terminal, environ, "", "permissions", "rules", "add", "allow", "block:main", "*", "*"
    )
    assert status == 1 and "Nothing was changed" in screen
    log = [json.loads(line) for line in (await cli("audit", "--event", "permissions", "--json")).splitlines()]
    assert log[0]["why"].startswith("deny-memory-diary: deny * to read") and len(log) == 4


async def test_a_rule_that_would_never_count_is_refused(running: Platform, cli: Cli, trunkline: Run) -> None:
    """Each error says what would be right; a file that is no rule is named, so that it can be removed."""
    assert "would ever match" in await cli(
        "permissions", "rules", "add", "deny", "*", "read", "diary/*", status=1
    )
    for name in ("fs_read", "native:trunkline-files:fs_read"):
        refused = await cli("permissions", "rules", "add", "deny", "*", "*", f"tool:{name}", status=1)
        assert "alias" in refused and "tool:read_file, " in refused
    request = WriteManyMemory(files={"policies/odd.json": "{"}, actor="owner")
    await running.bus.call(MEMORY_WRITE_MANY, request)
    assert (await call(running, "read_file", path="x")).output.count("odd.json")
    done = await anyio.to_thread.run_sync(lambda: trunkline("permissions", "rules", "list", "--json"))
    assert done.returncode == 1 and "odd.json" in json.loads(done.stdout)["policies"][0]["broken"]


@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ({"subject": "block:No Such"}, "does not name a block"),
        ({"subject": "agent"}, "not a subject"),
        ({"subject": "type:agents"}, "not a subject"),
        ({"resource": "memory:diary"}, "would ever match"),
        ({"resource": "files:home"}, "would ever match"),
        ({"id": "god-x"}, "reserved for Trunkline"),
        ({"id": "../x"}, "not a valid id for a rule"),
        ({"resource": "memory:/diary/*", "action": "exec"}, "The action exec does not exist for memory:"),
        ({"resource": "system:network"}, "The action read does not exist for system:network"),
        ({"conditions": Conditions(time_window="8-20")}, "--between 8-20"),
        ({"conditions": Conditions(days=("someday",))}, "--on someday"),  # type: ignore[arg-type]
        ({"conditions": Conditions(until=datetime.now(UTC) - timedelta(days=1))}, "is in the past"),
        ({"conditions": Conditions(requires_approval=True)}, "cannot have --ask"),
        ({"conditions": Conditions(max_per_day=0)}, "cannot have --ask"),
        ({"conditions": Conditions(zone="Nowhere/Town")}, "time zone"),
    ],
)
def test_errors_of_a_rule_are_reported(wrong: dict[str, Any], reported: str) -> None:
    """An owner who denies a call must learn of a mistake in the rule."""
    right: dict[str, Any] = {"subject": "*", "resource": "tool:*", "action": "read", "effect": "deny"}
    check_rule(Policy(**right))
    with pytest.raises(ConfigError, match=reported):
        check_rule(Policy(**{**right, **wrong}))


UNKNOWN = [
    ("block:nope", "*", "There is no block nope now.", []),
    ("block:mian", "*", "There is no block mian now.", ["block:main"]),
    ("main", "*", "main names a person with that id", ["block:main"]),
    ("*", "tool:write_fil", "No tool is called write_fil now.", ["tool:write_file"]),
    ("*", "tool:native:trunkline-file:*", "No tool is called native:", ["tool:native:trunkline-files:*"]),
    ("*", "tool:read_file", "No call of tool:read_file is a write, only: read.", []),
    ("ann", "block:mian", "There is no block mian now.", ["block:main"]),
]


async def test_unknown_names_of_a_rule_are_reported(running: Platform, trunkline: Run) -> None:
    """The rule is kept, since a block or plugin may be added later. A person gets a note on standard error, with
    similar names; a script gets ``unknown``."""
    for subject, resource, reported, near in UNKNOWN:
        action = "chat" if resource.startswith("block:") else "write"
        done = await anyio.to_thread.run_sync(
            trunkline, "permissions", "rules", "add", "deny", subject, action, resource, "--json"
        )
        assert (
            done.returncode == 0
            and f"Note: {reported}" in done.stderr
            and all(one in done.stderr for one in near)
        )
        (unknown,) = json.loads(done.stdout)["unknown"]
        assert unknown["problem"].startswith(reported) and unknown["similar"][: len(near)] == near
        assert (running.home.memory / "policies" / f"{json.loads(done.stdout)['id']}.json").exists()


def test_names_of_a_rule_are_checked_without_a_platform(trunkline: Run) -> None:
    """Among the blocks, the platform's own tools and those of plugins; whose tools are not known then is said."""
    assert trunkline("blocks", "list").returncode == 0
    for rule in (("type:agent", "*", "tool:read_result"), ("block:main", "write", "tool:write_file")):
        assert trunkline("permissions", "rules", "add", "deny", *rule).stderr == ""
    reported = trunkline(
        "permissions", "rules", "add", "deny", "block:mian", "write", "tool:write_fil"
    ).stderr
    assert (
        "Did you mean block:main?" in reported
        and "Did you mean tool:write_file" in reported
        and "MCP servers" in reported
    )


class Talkative:
    """Brings a tool that no plugin brings which a command would load by itself."""

    @face.hookimpl
    def trunkline_tools(self) -> list[face.Tool]:
        @face.tool(effect="read")
        def much() -> str:
            """Say much."""
            return "much"

        return [much]


async def test_known_names_of_a_rule_are_not_reported(home: Path, trunkline: Run) -> None:
    """The names are its short name and its source, and a person's id; tools that only the tools worker knows are
    included."""
    rules = [
        ("block:main", "write", "tool:write_file"),
        ("type:agent", "*", "tool:native:trunkline-files:*"),
        ("channel:cli", "read", "tool:much"),
        ("type:service", "chat", "block:main"),
    ]
    async with platform(home, workers=("memory", "tools", "gateway"), plugins=[Talkative()]):
        for rule in rules:
            done = await anyio.to_thread.run_sync(
                trunkline, "permissions", "rules", "add", "deny", *rule, "--json"
            )
            assert (done.returncode, done.stderr, json.loads(done.stdout)["unknown"]) == (0, "", []), rule


async def test_rules_of_no_block_are_an_error_unless_there_are_some(running: Platform, cli: Cli) -> None:
    """The error lists the existing blocks; a rule made before its block is listed."""
    reported = await cli("permissions", "rules", "list", "--block", "later", status=1)
    assert (
        "There is no block later." in reported
        and "Known blocks: main." in reported
        and "blocks create" in reported
    )
    await cli("permissions", "rules", "add", "deny", "block:later", "*", "tool:write_file")
    assert "block:later" in await cli("permissions", "rules", "list", "--block", "later")


async def test_an_unknown_rule_is_reported_before_confirmation(running: Platform, cli: Cli) -> None:
    """A script thus gets the report of its mistake, and of nothing else: removing a listed rule needs the terminal,
    and so does removing an unreadable file."""
    await cli("permissions", "rules", "add", "deny", "*", "read", "memory:/diary/*")
    await running.bus.call(
        MEMORY_WRITE_MANY, WriteManyMemory(files={"policies/odd.json": "{"}, actor="owner")
    )
    for mistake, hint in (
        ("nope", "permissions rules list"),
        ("deny-memory-dairy", "Did you mean deny-memory-diary?"),
    ):
        reported = await cli("permissions", "rules", "remove", mistake, status=1)
        assert f"There is no rule {mistake}." in reported and hint in reported and "terminal" not in reported
    for mistake in ("../blocks/main/block", "*", "", "deny"):
        assert "There is no rule" in await cli("permissions", "rules", "remove", mistake, status=1)
    for id in ("deny-memory-diary", "odd"):
        assert "needs a terminal" in await cli("permissions", "rules", "remove", id, status=1)
