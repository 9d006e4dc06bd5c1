"""Reading by lines, folders in depth, documents and pictures: fs_read's modes (MN-F13)."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from file_calls import refusal, run
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from trunkline import ToolError
from trunkline.api.documents import DocumentText
from trunkline.contracts.documents.reader import NoDocuments
from trunkline.testing.contexts import tool_context
from trunkline_files import path_tools, read_tools, search_tool, write_tools

LINES = st.lists(
    st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), max_size=8), max_size=9
)
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@examples(60)
@given(lines=LINES, ended=st.booleans(), first=st.integers(-12, 12), last=st.integers(-12, 12) | st.none())
def test_the_requested_lines_are_returned(
    tmp_path_factory: Any, lines: list[str], ended: bool, first: int, last: int | None
) -> None:
    """Lines are counted from 1, or from the end; line ends stay; only a line feed ends a line."""
    folder = tmp_path_factory.getbasetemp() / "lines"
    folder.mkdir(exist_ok=True)
    text = "\n".join(lines) + ("\n" if ended else "")
    (folder / "a").write_bytes(text.encode())
    there = text.split("\n")
    kept = [line + "\n" for line in there[:-1]] + ([there[-1]] if there[-1] else [])
    begin = first if first > 0 else max(1, len(kept) + 1 + first)
    end = len(kept) if last is None else last if last > 0 else len(kept) + 1 + last
    if first == 0 or last == 0 or (last is not None and end < begin):
        assert "do not exist" in refusal(read_tools.read_file, folder, "a", start_line=first, end_line=last)
        return
    found = run(read_tools.read_file, folder, "a", start_line=first, end_line=last)
    assert found == (
        "".join(kept[begin - 1 : end]) or f"[The file has {len(kept)} line{'s' * (len(kept) != 1)}.]"
    )


def test_lines_that_are_too_long_are_cut_and_read_on_by_characters(tmp_path: Path) -> None:
    """The note gives the position to continue at, and the rest is there."""
    text = "ä\n" * 10 + "ö" * 50 + "\nend"
    (tmp_path / "a").write_text(text)
    part = run(read_tools.read_file, tmp_path, "a", limit=20, start_line=11)
    body, _, note = part.partition("\n\n[Cut here: ")
    offset = int(note.rpartition("offset=")[2].rstrip(".]"))
    assert body + run(read_tools.read_file, tmp_path, "a", offset=offset) == text[20:]
    assert "either" in refusal(read_tools.read_file, tmp_path, "a", offset=3, start_line=1)


def test_huge_files_are_processed_without_being_loaded_into_memory(tmp_path: Path) -> None:
    """Thirty megabytes cost a few at most: reading the last lines, searching, adding, copying, and every preview."""
    with (tmp_path / "huge").open("wb") as file:
        for number in range(30):
            file.write(b"%07d a line of the file\n" % number * 40_000)
        file.write(b"the needle\n")
    (tmp_path / "one-line").write_bytes(b"x" * 20_000_000)
    tracemalloc.start()
    try:
        assert run(read_tools.read_file, tmp_path, "huge", start_line=-1) == "the needle\n"
        found = run(search_tool.search_files, tmp_path, "NEEDLE", case_sensitive=False)
        assert found == "huge:1200001: the needle"
        assert "offset=100000" in run(read_tools.read_file, tmp_path, "one-line", start_line=1, end_line=1)
        run(write_tools.append_to_file, tmp_path, "huge", "more\n")
        assert "+more" in write_tools._preview_append(tool_context(tmp_path), "huge", "more\n").text  # type: ignore[operator]
        run(path_tools.copy_file, tmp_path, "huge", "copy")
        path_tools._preview_delete(tool_context(tmp_path), "huge")  # type: ignore[operator]
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()
    assert (tmp_path / "copy").stat().st_size == (tmp_path / "huge").stat().st_size


def test_a_folder_is_listed_in_depth(tmp_path: Path) -> None:
    """Paths are relative to the listed folder, each folder before its content."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.md").write_text("four")
    (tmp_path / "a" / "d.md").write_text("")
    assert run(read_tools.list_directory, tmp_path, "a") == "b/\nd.md  0"
    assert run(read_tools.list_directory, tmp_path, "a", max_depth=2) == "b/\nb/c.md  4\nd.md  0"
    for number in range(2_010):
        (tmp_path / "a" / "b" / f"{number}").touch()
    found = run(read_tools.list_directory, tmp_path, max_depth=9).splitlines()
    assert len(found) == 2_001
    assert "Truncated" in found[-1]


class OneDocument(NoDocuments):
    """Reads every file as the same document."""

    async def read(self, path: str) -> DocumentText:
        if path.startswith("broken"):
            raise ToolError(f"{path!r} cannot be read: it is damaged.")
        return DocumentText(name=f"{path}.md", source=path, text="# Title\nfirst\nsecond\n", pages=1)


@pytest.mark.parametrize(
    "head", [b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", b"PK\x03\x04\x14\0", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0"]
)
def test_documents_are_read_as_the_text_that_they_hold(tmp_path: Path, head: bytes) -> None:
    """PDF and office files are recognized by content, and read by characters and lines of their text, like any file."""
    for name in ("report", "broken"):
        (tmp_path / name).write_bytes(head + b"\xff" * 100)
    given = tool_context(tmp_path, documents=OneDocument())
    assert run(read_tools.read_file, tmp_path, "report", given=given) == "# Title\nfirst\nsecond\n"
    assert run(read_tools.read_file, tmp_path, "report", start_line=-1, given=given) == "second\n"
    assert "damaged" in refusal(read_tools.read_file, tmp_path, "broken", given=given)
    assert "cannot be reached" in refusal(read_tools.read_file, tmp_path, "report")


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (PNG, "png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "jpeg"),
        (b"GIF89a\1\0\1\0\x80", "gif"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "webp"),
    ],
)
def test_MN_T15_a_binary_read_steers_to_describe_image(tmp_path: Path, head: bytes, kind: str) -> None:
    """A picture, recognized by its content and not by its name, is refused with the name of the tool that describes
    it."""
    (tmp_path / "notes.txt").write_bytes(head)
    for tool, arguments in (
        (read_tools.read_file, {}),
        (write_tools.replace_in_file, {"find": "a", "replace": "b"}),
    ):
        text = refusal(tool, tmp_path, "notes.txt", **arguments)
        assert "describe_image" in text
        assert kind in text
    (tmp_path / "photo.png").write_text("no picture")
    assert run(read_tools.read_file, tmp_path, "photo.png") == "no picture"
