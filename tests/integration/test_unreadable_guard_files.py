"""Guard files that cannot be read: links, pipes, and names that nothing reads. What they guard remains closed, and
doctor names them, because it reads them as the workers do."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from trunkline.cli.checks.runner import run_checks
from trunkline.config import load_config
from trunkline.contracts.memory.files import MemoryChanged
from trunkline.contracts.memory.subjects import MEMORY_CHANGED
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline.testing.platform import Platform, platform
from trunkline.testing.tool_calls import call_tool

pytestmark = pytest.mark.anyio

DENIAL = json.dumps({"subject": "*", "resource": "tool:list_directory", "action": "read", "effect": "deny"})

Laid = Callable[[Path, Path], None]


def linked(name: str) -> Laid:
    """A link to a denial that lies elsewhere."""
    return lambda policies, aside: (policies / name).symlink_to(aside / "no.json")


def behind_a_linked_folder(policies: Path, aside: Path) -> None:
    (policies / "more").symlink_to(aside)


def linked_itself(policies: Path, aside: Path) -> None:
    policies.rmdir()
    policies.symlink_to(aside)


def a_file_in_its_place(policies: Path, aside: Path) -> None:
    policies.rmdir()
    policies.write_text(DENIAL)


def a_pipe(policies: Path, aside: Path) -> None:
    os.mkfifo(policies / "no.json")


def nowhere(policies: Path, aside: Path) -> None:
    (policies / "no.json").symlink_to("/nonexistent")


def named(name: str, text: str = DENIAL) -> Laid:
    def laid(policies: Path, aside: Path) -> None:
        (policies / name).parent.mkdir(exist_ok=True)
        (policies / name).write_text(text)

    return laid


def a_repository(policies: Path, aside: Path) -> None:
    (policies / ".git").mkdir()
    (policies / "no.json").write_text(DENIAL)


SHUT: dict[str, tuple[Laid, str]] = {
    "a link": (linked("no.json"), "policies/no.json"),
    "a link by another name": (linked("no"), "policies/no"),
    "behind a linked folder": (behind_a_linked_folder, "policies/more"),
    "the folder is a link": (linked_itself, "policies"),
    "the folder is a file": (a_file_in_its_place, "policies"),
    "a pipe": (a_pipe, "policies/no.json"),
    "a link to nothing": (nowhere, "policies/no.json"),
    "another case": (named("NO.JSON"), "policies/NO.JSON"),
    "another case further down": (named("more/no.Json"), "policies/more/no.Json"),
    "a name that memory does not allow": (named("~no.json"), "policies/~no.json"),
    "a folder that memory does not allow": (named("~more/no.json"), "policies/~more"),
    "a repository": (a_repository, "policies"),
}


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    return tmp_path / "home/memory/policies"


def lay(policies: Path, laid: Laid) -> None:
    """Lay something into a folder of policies that holds nothing else."""
    if policies.is_symlink() or policies.is_file():
        policies.unlink()
    shutil.rmtree(policies, ignore_errors=True)
    policies.mkdir()
    laid(policies, policies.parents[2] / "aside")


async def reported(home: Path, check: str = "memory.policies") -> HealthResult:
    """Return doctor's findings."""
    with anyio.fail_after(60):
        found = await run_checks(read=lambda: load_config(home))
    (said,) = [one for one in found if one.id == check]
    return said  # type: ignore[return-value]


async def tried(running: Platform) -> tuple[str, str]:
    """Return the outcome of a call that the placed file denies, with its text."""
    changed = MemoryChanged(paths=("policies/no.json",), version="1")
    await running.bus.publish(MEMORY_CHANGED, changed, part="files")
    outcome = await call_tool(running.bus, "list_directory", {"path": "."})
    return outcome.status, outcome.output


async def test_an_unreadable_file_that_may_deny_refuses_every_tool(tmp_path: Path, policies: Path) -> None:
    """A link is not followed and a pipe not waited for, and a slip in the ending is no way out; each is named."""
    aside = tmp_path / "aside"
    aside.mkdir()
    (aside / "no.json").write_text(DENIAL)
    async with platform(tmp_path / "home", config={"permissions.approvals": "none"}) as running:
        for case, (laid, name) in SHUT.items():
            lay(policies, laid)
            status, said = await tried(running)
            assert status == "error" and "A policy cannot be read" in said and name in said, (case, said)
            found = await reported(running.home.path)
            assert found.status == "warning" and name in found.summary, (case, found)
            lay(policies, named("notes.md", "nothing"))
            assert (await tried(running))[0] == "ok", case


async def test_a_policy_file_with_an_invalid_name_is_reported(tmp_path: Path, policies: Path) -> None:
    """The file limits no one, and doctor reports it to its author."""
    async with platform(tmp_path / "home", config={"permissions.approvals": "none"}) as running:
        for name in ("no.jsonc", "no.toml", "../Policies/no.json"):
            lay(policies, named(name))
            assert (await tried(running))[0] == "ok"
            found = await reported(running.home.path)
            shown = "Policies/" if name.startswith("..") else f"policies/{name}"
            assert found.status == "warning" and shown in found.summary, found


def rule(**changed: str) -> str:
    return json.dumps({**json.loads(DENIAL), **changed}, indent=1)


WORDS = {
    "no.json, line 2: 'blok:main' is not a subject": rule(subject="blok:main"),
    "no.json, line 4: 'wirte' is not an action": rule(action="wirte"),
    "Did you mean block:main?": rule(subject="block:mian"),
    "No tool is called lst_directory now": rule(resource="tool:lst_directory"),
}


@pytest.mark.parametrize("said", WORDS)
async def test_unknown_words_of_a_policy_are_reported(tmp_path: Path, said: str) -> None:
    """A misspelled word is reported like an unreadable file; a block or tool that may be added later is reported as
    missing."""
    (tmp_path / "memory/policies").mkdir(parents=True)
    (tmp_path / "memory/blocks/main").mkdir(parents=True)
    (tmp_path / "memory/policies/no.json").write_text(WORDS[said])
    found = await reported(tmp_path)
    assert found.status == "warning" and said in found.summary and "no.json" in found.summary, found


def elsewhere(file: Path) -> None:
    """A link to a file of settings that lies elsewhere."""
    (aside := file.with_name("aside.toml")).write_text("")
    file.symlink_to(aside)


def nothing(file: Path) -> None:
    file.symlink_to("/nonexistent")


def folder(file: Path) -> None:
    file.mkdir()


def folder_elsewhere(file: Path) -> None:
    """A link in the place of the folder."""
    aside = file.parents[3] / "aside"
    file.parent.rename(aside)
    (aside / file.name).write_text("")
    file.parent.symlink_to(aside)


@pytest.mark.parametrize("laid", [elsewhere, nothing, folder, os.mkfifo, folder_elsewhere])
@pytest.mark.parametrize("name", ["preferences.toml", "blocks/main/block.toml"])
async def test_settings_that_are_not_read_are_reported(
    tmp_path: Path, name: str, laid: Callable[[Path], None]
) -> None:
    """The content of the settings is unknown, so no message is accepted (``test_malformed_files``)."""
    if laid is folder_elsewhere and "/" not in name:
        return
    (tmp_path / "memory/blocks/main").mkdir(parents=True)
    laid(tmp_path / "memory" / name)
    found = await reported(tmp_path, "memory.settings")
    assert found.status == "error" and name.removesuffix("/block.toml") in found.summary, found


async def test_unreadable_instructions_stop_model_calls_and_are_reported(tmp_path: Path) -> None:
    """The owner's text in the file may forbid something, so no model is called without it."""
    for name in ("AGENT.md", "MEMORY.md", "identity/SOUL.md", "identity/USER.md"):
        home = tmp_path / name.replace("/", "-")
        file = home / "memory" / name
        file.parent.mkdir(parents=True)
        file.write_bytes("Höflich, und nie löschen.".encode("latin-1"))
        async with platform(home) as running:
            said = str((await running.say("hello")).events)
            assert "No model was called" in said and name in said
        found = await reported(home, "memory.instructions")
        assert found.status == "error" and name in found.summary, found


@pytest.mark.parametrize(
    "name",
    ["memory/blocks/main/block.toml", "memory/preferences.toml", "memory/AGENT.md", "memory/skills/brew/SKILL.md",
     "remotes/laptop.toml", "plugins.toml", "quarantine.json", "trunkline.toml"],
)  # fmt: skip
async def test_doctor_waits_for_no_pipe(tmp_path: Path, name: str) -> None:
    """A pipe in the place of a file is reported, and so is every other problem."""
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / name)
    with anyio.fail_after(60):
        found = await run_checks(read=lambda: load_config(tmp_path))
    assert any(Path(name).name in one.summary or Path(name).parent.name in one.summary for one in found), (
        found
    )
