"""The effects of the file tools, beyond the contract of tools (MB-F16)."""

import re
from pathlib import Path

import pytest
from file_calls import refusal, run

from trunkline_files import find_tool, path_tools, read_tools, search_tool, write_tools
from trunkline_files.globs import matches


def test_a_text_is_read_back_unchanged(tmp_path: Path) -> None:
    """Every character, line ends and control characters included (PA-T15)."""
    text = "".join(map(chr, range(1, 256))) + "\r\n\n\r end \u2028 \U0001f600"
    (tmp_path / "a").write_bytes(text.encode())
    assert run(read_tools.read_file, tmp_path, "a") == text


def test_a_long_text_is_cut_with_a_note_and_read_on_from_there(tmp_path: Path) -> None:
    """100 000 characters at a time; the parts put together are the file."""
    text = "".join(f"line {number} äöü\r\n" for number in range(20_000))
    (tmp_path / "long").write_bytes(text.encode())
    found, offset = "", 0
    while True:
        part = run(read_tools.read_file, tmp_path, "long", offset=offset)
        body, cut, note = part.partition("\n\n[Cut here: ")
        found += body
        if not cut:
            break
        assert len(body) == 100_000
        assert f"Read on with offset={offset + 100_000}." in note
        offset += 100_000
    assert found == text
    assert "no more than" in run(read_tools.read_file, tmp_path, "long", offset=10**9)


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    """NUL bytes and invalid UTF-8 are recognized at any position."""
    (tmp_path / "nul").write_bytes(b"text\0more")
    (tmp_path / "latin").write_bytes("fa\xe7ade".encode("latin-1"))
    (tmp_path / "late").write_bytes(b"a" * 20_000 + b"\xff\xfe")
    for name in ("nul", "latin", "late"):
        assert "not a text file" in refusal(read_tools.read_file, tmp_path, name)
    assert "text: no" in run(read_tools.file_info, tmp_path, "nul")


def test_the_time_of_a_file_is_local_with_its_offset(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert re.search(
        r"changed: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d", run(read_tools.file_info, tmp_path, "a")
    )


def test_a_character_cut_at_the_end_of_the_sample_is_not_binary(tmp_path: Path) -> None:
    """The sample at the beginning is not taken for binary because of half a character."""
    for shift in range(4):
        (tmp_path / "a").write_bytes(b"x" * (8192 - shift) + "\U0001f600".encode() * 3)
        assert run(read_tools.read_file, tmp_path, "a").endswith("\U0001f600")


def test_a_missing_file_is_reported_with_similar_names(tmp_path: Path) -> None:
    """The same name elsewhere, a like name here, and where memory is read."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "plan.md").write_text("x")
    text = refusal(read_tools.read_file, tmp_path, "plan.md")
    assert "Did you mean 'notes/plan.md'?" in text
    assert "memory_read" in text
    assert "Did you mean 'notes/plan.md'?" in refusal(read_tools.read_file, tmp_path, "notes/plans.md")
    assert "list_directory" in refusal(read_tools.read_file, tmp_path, "notes")
    assert "is not a folder" in refusal(read_tools.list_directory, tmp_path, "notes/plan.md")


def test_a_folder_is_listed_by_name(tmp_path: Path) -> None:
    """Folders end with a slash, files have their size, links are shown and not followed."""
    (tmp_path / "b").mkdir()
    (tmp_path / "a.txt").write_text("four")
    (tmp_path / "c").symlink_to("/etc")
    assert run(read_tools.list_directory, tmp_path) == "a.txt  4\nb/\nc  (link)"
    assert run(read_tools.list_directory, tmp_path, "b") == "The folder is empty."


def test_a_file_is_written_whole_with_its_folders(tmp_path: Path) -> None:
    """The file is created first, replaced then; the content on disk is the given content."""
    assert run(write_tools.write_file, tmp_path, "a/b/c.txt", "x\r\ny") == "Created a/b/c.txt (4 characters)."
    assert run(write_tools.write_file, tmp_path, "a/b/c.txt", "") == "Replaced a/b/c.txt (0 characters)."
    assert (tmp_path / "a/b/c.txt").read_bytes() == b""
    assert [path.name for path in (tmp_path / "a/b").iterdir()] == ["c.txt"]
    assert "lone surrogate" in refusal(write_tools.write_file, tmp_path, "d", "\ud800")


def test_text_is_added_at_the_end(tmp_path: Path) -> None:
    """The file is made when it is absent."""
    run(write_tools.append_to_file, tmp_path, "log/x", "one\n")
    run(write_tools.append_to_file, tmp_path, "log/x", "two\n")
    assert (tmp_path / "log/x").read_text() == "one\ntwo\n"


def test_a_replacement_must_be_clear(tmp_path: Path) -> None:
    """Absent or ambiguous text leaves the file as it is, with a hint; all replaces every place (MN-T15)."""
    file = tmp_path / "a"
    file.write_text("one two two\n")
    assert "does not contain that text." in refusal(write_tools.replace_in_file, tmp_path, "a", "three", "3")
    assert "other capitals" in refusal(write_tools.replace_in_file, tmp_path, "a", "ONE", "1")
    assert "other spaces" in refusal(write_tools.replace_in_file, tmp_path, "a", "one  two", "1")
    assert "2 times" in refusal(write_tools.replace_in_file, tmp_path, "a", "two", "2")
    assert "empty" in refusal(write_tools.replace_in_file, tmp_path, "a", "", "2")
    assert file.read_text() == "one two two\n"
    assert run(write_tools.replace_in_file, tmp_path, "a", "two", "2", all=True) == "Replaced 2 places in a."
    assert file.read_text() == "one 2 2\n"


def test_copying_and_moving_overwrite_nothing(tmp_path: Path) -> None:
    """The target must be free; folders on the way are made."""
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    assert "exists already" in refusal(path_tools.copy_file, tmp_path, "a", "b")
    assert "exists already" in refusal(path_tools.move_file, tmp_path, "a", "b")
    run(path_tools.copy_file, tmp_path, "a", "x/y/a")
    run(path_tools.move_file, tmp_path, "b", "x/b")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == [
        "a", "x/b", "x/y/a",
    ]  # fmt: skip
    run(path_tools.move_file, tmp_path, "x", "z")
    assert (tmp_path / "z/y/a").read_text() == "a"


def test_only_files_and_empty_folders_are_deleted(tmp_path: Path) -> None:
    """A folder that holds something stays."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("a")
    assert "not empty" in refusal(path_tools.delete_file, tmp_path, "full")
    run(path_tools.delete_file, tmp_path, "full/a")
    run(path_tools.delete_file, tmp_path, "full")
    assert list(tmp_path.iterdir()) == []
    assert "no 'full'" in refusal(path_tools.delete_file, tmp_path, "full")
    assert "workspace itself" in refusal(path_tools.delete_file, tmp_path, "")


def test_a_search_finds_lines_and_skips_binary_files(tmp_path: Path) -> None:
    """Path, line number and line; small letters match capitals, capitals only themselves."""
    (tmp_path / "a.md").write_text("Alpha\nbeta ALPHA\n")
    (tmp_path / "b.txt").write_text("alpha")
    (tmp_path / "bin").write_bytes(b"alpha\0")
    (tmp_path / ".env").write_text("alpha=secret")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x").write_text("alpha")
    assert (
        run(search_tool.search_files, tmp_path, "alpha")
        == "a.md:1: Alpha\na.md:2: beta ALPHA\nb.txt:1: alpha"
    )
    assert run(search_tool.search_files, tmp_path, "ALPHA") == "a.md:2: beta ALPHA"
    assert run(search_tool.search_files, tmp_path, "alpha", include="*.txt") == "b.txt:1: alpha"
    assert run(search_tool.search_files, tmp_path, "alpha", path="b.txt") == "b.txt:1: alpha"
    assert run(search_tool.search_files, tmp_path, "a.*a") == "No line contains 'a.*a'."


def test_a_search_is_bounded(tmp_path: Path) -> None:
    """50 lines a file, 20 000 characters in all, with a note."""
    (tmp_path / "a").write_text("hit\n" * 60)
    assert "a: [more than 50 lines]" in run(search_tool.search_files, tmp_path, "hit")
    for number in range(200):
        (tmp_path / f"f{number}").write_text("hit " + "x" * 250)
    found = run(search_tool.search_files, tmp_path, "hit")
    assert "[Truncated: there is more." in found
    assert len(found) < 21_000


@pytest.mark.parametrize(
    ("pattern", "path", "does"),
    [
        ("*.md", "a/b.md", True),
        ("*.MD", "a/b.md", True),
        ("b.?d", "a/b.md", True),
        ("*.txt", "a/b.md", False),
        ("a/*.md", "a/b.md", True),
        ("a/*.md", "a/x/b.md", False),
        ("a/**/*.md", "a/x/y/b.md", True),
        ("a/**/*.md", "a/b.md", True),
        ("**/b.md", "b.md", True),
        ("a/**", "a/x/y", True),
        ("**/" * 40 + "x", "a/" * 40 + "y", False),
        ("*a" * 30 + "/x", "a" * 60 + "/y", False),
    ],
)
def test_patterns(pattern: str, path: str, does: bool) -> None:
    """Names by * and ?, paths by ** as well; none takes long."""
    assert matches(pattern, path) is does


def test_names_are_found_up_to_a_hundred(tmp_path: Path) -> None:
    """Folders end with a slash; paths below the depth limit are omitted."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.md").write_text("")
    assert run(find_tool.find_files, tmp_path, "*") == "a/\na/b/\na/b/c.md"
    assert run(find_tool.find_files, tmp_path, "*", max_depth=2) == "a/\na/b/"
    assert run(find_tool.find_files, tmp_path, "*.py") == "Nothing matches '*.py'."
    for number in range(150):
        (tmp_path / f"{number}.log").write_text("")
    found = run(find_tool.find_files, tmp_path, "*.log").splitlines()
    assert len(found) == 101
    assert "more than 100" in found[-1]
