"""Edits, and what people are shown before they are made."""

from pathlib import Path
from typing import Any

import pytest
from file_calls import refusal, run, shown
from hypothesis import given
from hypothesis import strategies as st

from trunkline import ToolError
from trunkline_files import path_tools, write_tools
from trunkline_files.text_edits import insert_lines

LINES = st.lists(st.text("ab ", max_size=3), max_size=6)


@given(lines=LINES, ended=st.booleans(), new=LINES.filter(bool), at=st.integers(0, 8))
def test_text_is_inserted_after_a_line(lines: list[str], ended: bool, new: list[str], at: int) -> None:
    """All lines of before are there, the new ones between them; a line that is not there is refused."""
    text = "\n".join(lines) + ("\n" if ended and lines else "")
    there = text.split("\n")
    there = there if there[-1] else there[:-1]
    if at > len(there):
        with pytest.raises(ToolError, match="nothing can be inserted after"):
            insert_lines(text, "a", at, "x")
        return
    result = insert_lines(text, "a", at, "\n".join(new) + "\n")
    assert (
        result
        == "".join(f"{line}\n" for line in [*there[:at], *new])
        + text[len("".join(f"{line}\n" for line in there[:at])) :]
    )


def test_line_ends_are_those_of_the_file(tmp_path: Path) -> None:
    """Text inserted between lines with Windows line ends, or after a last line without an end, is a separate line."""
    (tmp_path / "a").write_bytes(b"one\r\ntwo")
    run(write_tools.insert_in_file, tmp_path, "a", 1, "new")
    run(write_tools.insert_in_file, tmp_path, "a", 3, "last")
    assert (tmp_path / "a").read_bytes() == b"one\r\nnew\r\ntwo\r\nlast"
    (tmp_path / "b").write_text("x")
    run(write_tools.insert_in_file, tmp_path, "b", 0, "first")
    assert (tmp_path / "b").read_text() == "first\nx"


CHANGES: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (write_tools.write_file, {"content": "new\n"}, {"change": "write", "text": "new\n"}),
    (write_tools.append_to_file, {"content": "new\n"}, {"change": "append", "text": "new\n"}),
    (write_tools.insert_in_file, {"line": 1, "text": "new\n"}, {"change": "insert", "line": 1, "text": "new\n"}),
    (write_tools.insert_in_file, {"line": 9, "text": "new\n"}, {"change": "insert", "line": 9, "text": "new\n"}),
    (write_tools.replace_in_file, {"find": "two", "replace": "new"},
     {"change": "replace", "find": "two", "text": "new"}),
    (write_tools.replace_in_file, {"find": "o", "replace": "0"}, {"change": "replace", "find": "o", "text": "0"}),
    (write_tools.replace_in_file, {"find": "o", "replace": "0", "all": True},
     {"change": "replace", "find": "o", "text": "0", "all": True}),
    (write_tools.replace_in_file, {"find": "absent", "replace": ""}, {"change": "replace", "find": "absent"}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments", "change"), CHANGES)
@pytest.mark.parametrize("there", [True, False])
def test_a_preview_shows_what_the_change_then_does(
    tmp_path: Path, tool: Any, arguments: dict[str, Any], change: dict[str, Any], there: bool
) -> None:
    """preview_change writes nothing, shows the diff that a person would be shown, and refuses what would be refused."""
    file = tmp_path / "a"
    if there:
        file.write_text("one\ntwo\n")
    try:
        reported = run(write_tools.preview_change, tmp_path, "a", **change)
    except ToolError as error:
        assert file.exists() == there
        assert refusal(tool, tmp_path, "a", **arguments) == str(error)
        return
    assert file.exists() == there
    assert "[Nothing was changed.]" in reported
    assert shown(tool, tmp_path, path="a", **arguments) in reported
    run(tool, tmp_path, "a", **arguments)
    for line in file.read_text().splitlines():
        assert line in reported


def test_a_preview_shows_deletions_and_moves(tmp_path: Path) -> None:
    """The text of a small file that would be deleted, the size and age of anything else."""
    (tmp_path / "a").write_text("secret plan\n")
    (tmp_path / "b").write_bytes(b"\0" * 300)
    (tmp_path / "c").mkdir()
    assert "-secret plan" in shown(path_tools.delete_file, tmp_path, path="a")
    assert "b (file, 300 bytes" in shown(path_tools.delete_file, tmp_path, path="b")
    assert "c (folder" in shown(path_tools.delete_file, tmp_path, path="c")
    assert "a (file, 12 bytes" in shown(path_tools.move_file, tmp_path, source="a", target="d/e")
    assert "to d/e" in shown(path_tools.move_file, tmp_path, source="a", target="d/e")
    assert "to d/e" in shown(path_tools.copy_file, tmp_path, source="a", target="d/e")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]
