"""``trunkline plugins``: the list, and a package to start with."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import at_terminal

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_plugins_are_listed_with_the_reason_for_not_loading(trunkline: Run, tmp_path: Path) -> None:
    """The list has name, version, distribution, hooks and status, and the reason for a missing one."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "broken.py").write_text("import nothing_of_that_name\n")
    env = {"TRUNKLINE_RUNTIME__TOOL_SOURCES": str(folder)}
    listed = {
        one["name"]: one
        for one in json.loads(trunkline("plugins", "list", "--json", env=env).stdout)["plugins"]
    }
    assert listed["offline"]["status"] == "loaded" and "trunkline_models" in listed["offline"]["hooks"]
    assert listed["offline"]["owner"] == "trunkline-offline" and listed["offline"]["version"]
    assert listed["broken"]["status"] == "failed" and "nothing_of_that_name" in listed["broken"]["reason"]
    table = trunkline("plugins", "list", env=env).stdout
    assert "PLUGIN" in table and "broken is failed:" in table


def test_plugin_texts_are_escaped_for_the_terminal(home: Path) -> None:
    """The list and the doctor show the reason for not loading in the plugin's own words, without control characters."""
    home.mkdir()
    (home / "drop-in").mkdir()
    (home / "drop-in" / "evil.py").write_text('raise RuntimeError("\\x1b[2J\\x1b]0;owned\\x07 reason")\n')
    (home / "trunkline.toml").write_text('[runtime]\ntool_sources = ["drop-in"]\n')
    for words in (("plugins", "list"), ("doctor",)):
        shown = at_terminal(home, *words)
        assert "owned" in shown and "reason" in shown, shown
        assert not set(re.sub(r"\x1b\[[0-9;]*m", "", shown)) & {"\x1b", "\x07"}, shown  # colours are our own
        assert "\x1b[2J" not in shown


def test_the_messages_of_plugins_are_listed(trunkline: Run, tmp_path: Path) -> None:
    """Tag, plugin and what each says; as JSON with the schema, for who reads them off the bus."""
    assert "No plugin publishes on its own subjects" in trunkline("plugins", "messages").stdout
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "garden.py").write_text(
        "import trunkline\nfrom trunkline.api.bus import Payload\n\n\n"
        'class Watered(Payload, frozen=True, kw_only=True, tag="garden.watered.v1"):\n'
        '    """A plant was watered."""\n\n    plant: str\n\n\n'
        "@trunkline.hookimpl\ndef trunkline_messages():\n    return [Watered]\n"
    )
    env = {"TRUNKLINE_RUNTIME__TOOL_SOURCES": str(folder)}
    (row,) = trunkline("plugins", "messages", env=env).stdout.splitlines()[1:]
    assert row.split("  ") == ["garden.watered.v1", "file:garden", "A plant was watered."]
    (reported,) = json.loads(trunkline("plugins", "messages", "--json", env=env).stdout)
    assert reported["tag"] == "garden.watered.v1" and "plant" in json.dumps(reported["schema"])


@pytest.mark.timeout(300)
def test_a_new_plugin_of_each_kind_is_green_as_generated(
    trunkline: Run, tmp_path: Path, environ: dict[str, str]
) -> None:
    """Installed with pip as it came, it passes its contract suite, ruff and mypy --strict, and takes part."""
    owners = [f"trunkline-rain-{kind}" for kind in ("tool", "channel", "adapter", "store")]
    for owner in owners:
        done = trunkline("plugins", "new", owner.split("-")[2], owner[10:], "--into", str(tmp_path))
        assert done.returncode == 0 and "Try it:" in done.stdout, done.stderr
        there = {path.name for path in (tmp_path / owner).rglob("*")}
        assert {"pyproject.toml", "README.md"} <= there and not [name for name in there if "ample" in name]
    site = tmp_path / "site"
    pip = ("pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(site))
    for tool in (
        (*pip, *(str(tmp_path / owner) for owner in owners)),
        ("pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", *owners),
        ("ruff", "check", *owners),
        ("ruff", "format", "--check", *owners),
        ("mypy", "--strict", *owners),
    ):
        run = subprocess.run(
            [sys.executable, "-m", *tool], env={**environ, "PYTHONPATH": str(site)}, cwd=tmp_path,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stdout + run.stderr
    listed = json.loads(trunkline("plugins", "list", "--json", env={"PYTHONPATH": str(site)}).stdout)
    states = {one["owner"]: one["status"] for one in listed["plugins"]}
    assert [states[owner] for owner in owners] == ["loaded"] * 4 and not listed["troubles"], listed


def test_a_new_plugin_never_overwrites_and_takes_no_name(trunkline: Run, tmp_path: Path) -> None:
    """Existing files stay; a name that is no package name, or that is taken, is refused with a hint."""
    trunkline("plugins", "new", "tool", "rain", "--into", str(tmp_path))
    for name, said in {
        "rain": "exists already",
        "files": "a plugin trunkline-files already",
        "Rain": "'Rain' is not a valid name",
        "../rain": "is not a valid name",
        "rain_gauge": "lower-case words with dashes",
    }.items():
        again = trunkline("plugins", "new", "tool", name, "--into", str(tmp_path))
        assert again.returncode == 1 and said in again.stderr and "Hint:" in again.stderr, again.stderr
