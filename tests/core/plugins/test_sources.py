"""Plugins that are one file: dropped in and taken out while the platform runs (SWAP-3)."""

import os

import pytest

TOOL = """
import trunkline

@trunkline.tool(effect="read")
def t_{name}() -> str:
    "{text}"
    return "{text}"

@trunkline.hookimpl
def trunkline_tools():
    return [t_{name}]
"""


def drop(folder, name, text="Answer."):
    (folder / f"{name}.py").write_text(TOOL.format(name=name, text=text))


def found(plugins):
    return {owned.item.spec.name: owned for owned in plugins.tools() if owned.owner.startswith("file:")}


def test_a_file_plugin_is_added_and_removed(load, sources):
    """SWAP-3: a dropped-in tool is there after a reload; taken out, it is gone, and nothing fails."""
    before = load()
    assert not before.is_outdated() and found(before) == {}
    drop(sources, "moon")
    assert before.is_outdated()
    after = load()
    assert found(after)["t_moon"].owner == "file:moon" and not after.is_outdated()
    (sources / "moon.py").unlink()
    assert after.is_outdated()
    gone = load()
    assert found(gone) == {} and gone.report.unusable == before.report.unusable
    assert gone.sources_version() == before.sources_version()


def test_special_files_do_not_hide_file_plugins(load, sources):
    """A link that leads round in a circle, one to nothing, and a folder are passed over; a file beside them counts."""
    drop(sources, "moon")
    (sources / "circle.py").symlink_to("circle.py")
    (sources / "nothing.py").symlink_to("absent")
    (sources / "folder.py").mkdir()
    assert set(found(load())) == {"t_moon"}


def test_a_changed_file_is_reloaded(load, sources):
    """An edit that keeps size and second is not hidden by a compiled file, and none is left behind."""
    drop(sources, "moon", "Waxing.")
    when = (1_700_000_000, 1_700_000_000)
    os.utime(sources / "moon.py", when)
    assert found(load())["t_moon"].item.function() == "Waxing."
    drop(sources, "moon", "Waning.")
    os.utime(sources / "moon.py", when)
    assert found(load())["t_moon"].item.function() == "Waning."
    assert [child.name for child in sources.iterdir()] == ["moon.py"]


def test_a_file_with_types_of_its_own(load, sources):
    """A file may define structs whose annotations are resolved later; its module has a private name."""
    (sources / "shop.py").write_text(
        "from __future__ import annotations\n"
        "import msgspec, trunkline\n"
        "class Item(msgspec.Struct):\n    name: str\n"
        '@trunkline.tool(effect="write")\n'
        'def t_buy(item: Item) -> str:\n    "Buy."\n    return item.name\n'
        "@trunkline.hookimpl\ndef trunkline_tools():\n    return [t_buy]\n"
    )
    tool = found(load())["t_buy"].item
    assert tool.spec.parameters["properties"]["item"] == {"$ref": "#/$defs/Item"}
    assert tool.function.__module__.startswith("_trunkline_file_")


def test_broken_files_and_other_kinds_of_files(load, sources, state):
    """A broken file fails alone; files that begin with ``_`` or ``.`` and other kinds are not plugins."""
    drop(sources, "moon")
    (sources / "half.py").write_text("def trunkline_tools(")
    (sources / "_helper.py").write_text("raise RuntimeError")
    (sources / ".hidden.py").write_text("raise RuntimeError")
    (sources / "notes.md").write_text("# no plugin")
    plugins = load()
    assert set(found(plugins)) == {"t_moon"}
    assert state(plugins, "file:half").status == "failed"
    assert {s.owner for s in plugins.report.plugins if s.owner.startswith("file:")} == {
        "file:half",
        "file:moon",
    }


def test_a_folder_that_is_not_there(load, sources, state):
    """The missing folder is reported; nothing else fails."""
    sources.rmdir()
    assert state(load(), f"folder:{sources}").status == "failed"


@pytest.mark.parametrize("section", ["[tools]\nworkspaces", "#"])
def test_code_that_agents_could_write_is_refused(load, home, sources, state, section):
    """A folder of plugins inside the workspaces or the memory root is within an agent's reach: refused."""
    drop(sources, "moon")
    reach = f"{section} = '.'\n" if section != "#" else ""
    plugins = load(reach, TRUNKLINE_RUNTIME__MEMORY_ROOT="" if reach else str(home))
    assert found(plugins) == {}
    assert "where agents can write" in state(plugins, "file:moon").reason


def test_the_same_name_in_two_folders(load, home, sources):
    """Both load; the owners differ, and a tool name that both want stays with the first."""
    other = home / "more"
    other.mkdir()
    drop(sources, "moon")
    drop(other, "moon")
    plugins = load(TRUNKLINE_RUNTIME__TOOL_SOURCES=f"{sources},{other}")
    assert found(plugins)["t_moon"].owner == "file:moon"
    assert [trouble.owner for trouble in plugins.report.troubles] == ["file:moon-2"]
