"""The file tools by the names that other systems gave them (MN-F13, MN-T15), over the bus as an agent calls them."""

import shutil
from typing import Any

import pytest

from trunkline._util.untrusted_text import unwrap_tool_result

from .conftest import Caller

pytestmark = pytest.mark.anyio


async def test_MN_T15_the_modes_of_fs_read(caller: Caller) -> None:
    """Lines, folders, a search; a picture steers to describe_image; nothing of it is shown to a model twice."""
    caller.workspace.mkdir(parents=True)
    (caller.workspace / "d").mkdir()
    (caller.workspace / "d" / "a.csv").write_text("name,age\nAda,36\nbob,7\n")
    (caller.workspace / "p.txt").write_bytes(b"\x89PNG\r\n\x1a\n\0")

    async def read(**arguments: Any) -> str:
        return unwrap_tool_result((await caller.call("fs_read", arguments)).output)

    assert await read(path="d/a.csv") == "name,age\nAda,36\nbob,7\n"
    assert await read(path="d/a.csv", mode="Line", start_line=2, end_line=-2) == "Ada,36\n"
    assert await read(path="d/a.csv", mode="Line", start_line="-1") == "bob,7\n"
    assert await read(path="", mode="Directory", depth=1) == "d/\nd/a.csv  22\np.txt  9"
    assert await read(path="d/a.csv", mode="Search", pattern="ADA", context_lines=1) == (
        "d/a.csv-1- name,age\nd/a.csv:2: Ada,36\nd/a.csv-3- bob,7"
    )
    assert "needs a pattern" in await read(path="d", mode="Search")
    assert "describe_image" in await read(path="p.txt")
    shown = await caller.names()
    assert not shown & {"fs_read", "fs_write", "file_edit", "glob_search", "grep_search"}
    assert {"read_file", "replace_in_file", "find_files", "search_files", "describe_image"} <= shown


PDF = b"""%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj
3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R
  /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >> endobj
4 0 obj << /Length 52 >> stream
BT /F1 12 Tf 72 720 Td (The tide is at seven.) Tj ET
endstream endobj
trailer << /Root 1 0 R >>
%%EOF
"""


async def test_MN_F13_documents_are_read_as_the_text_in_them(caller: Caller) -> None:
    """CSV and JSON are read unchanged, PDF and DOCX by the readers of plugins, completely or by lines; a broken file
    gives an error."""
    from docx import Document

    caller.workspace.mkdir(parents=True)
    for name, data in (
        ("a.csv", b"a,b\n1,2\n"),
        ("a.json", b'{"a": [1, 2]}'),
        ("a.pdf", PDF),
        ("b.pdf", PDF[:40]),
    ):
        (caller.workspace / name).write_bytes(data)
    document = Document()
    document.add_heading("Harbour", 1)
    document.add_paragraph("Mind the current.")
    document.save(str(caller.workspace / "a.docx"))

    async def read(**arguments: Any) -> str:
        return unwrap_tool_result((await caller.call("fs_read", arguments)).output)

    assert await read(path="a.csv") == "a,b\n1,2\n"
    assert await read(path="a.json") == '{"a": [1, 2]}'
    assert "The tide is at seven." in await read(path="a.pdf")
    text = await read(path="a.docx")
    assert "# Harbour" in text
    lines = text.splitlines()
    last = next(at for at, line in enumerate(lines, 1) if "current" in line)
    assert (await read(path="a.docx", start_line=last, end_line=last)).strip() == "Mind the current."
    assert "cannot be read" in await read(path="b.pdf")


async def test_MN_F13_fs_write_is_a_dry_run_by_default(tools: Any) -> None:
    """A dry run, which is the default, changes nothing and needs no approval; no text of the model counts as an
    approval."""
    config = {"permissions.approvals": "some"}
    async with tools(config=config) as caller:
        caller.workspace.mkdir(parents=True)
        (caller.workspace / "a").write_text("one\ntwo\n")
        commands = (
            ({"command": "create", "file_text": "new\n"}, "write_file", "+new"),
            ({"command": "append", "new_str": "new\n"}, "append_to_file", "+new"),
            ({"command": "insert", "insert_line": 1, "new_str": "new\n"}, "insert_in_file", "+new"),
            ({"command": "str_replace", "old_str": "two", "new_str": "new"}, "replace_in_file", "-two"),
        )
        for arguments, tool, diff in commands:
            dry = await caller.call("fs_write", {"path": "a", **arguments})
            assert dry.status == "ok", dry.output
            assert diff in dry.output
            wet = await caller.call(
                "fs_write", {"path": "a", **arguments, "dry_run": False, "confirmed": True}
            )
            assert wet.status == "approval"
            assert tool in wet.question
        lacking = await caller.call("fs_write", {"path": "a", "command": "insert", "new_str": "x"})
        assert "insert needs insert_line" in lacking.output
        assert (caller.workspace / "a").read_text() == "one\ntwo\n"


async def test_MN_T15_globs_and_greps_by_their_other_names(caller: Caller) -> None:
    """glob_search is cut at max_results with a note; grep_search returns files unless lines are requested."""
    caller.workspace.mkdir(parents=True)
    for number in range(4):
        (caller.workspace / f"{number}.py").write_text(f"def f{number}():\n    pass\n")
    found = unwrap_tool_result(
        (await caller.call("glob_search", {"pattern": "**/*.py", "max_results": 3})).output
    )
    assert found.splitlines()[:3] == ["0.py", "1.py", "2.py"]
    assert "Truncated" in found
    found = await caller.call("grep_search", {"pattern": r"f[13]\(", "file_pattern": "*.py"})
    assert unwrap_tool_result(found.output) == "1.py\n3.py"
    arguments = {
        "pattern": "DEF F2",
        "case_insensitive": True,
        "output_mode": "content",
        "context_lines": 1,
    }
    found = await caller.call("grep_search", arguments)
    assert unwrap_tool_result(found.output) == "2.py:1: def f2():\n2.py-2-     pass"


# Ripgrep ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
async def test_ripgrep_and_python_find_the_same_lines(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They return the same lines in the same order, for any request; in the sandbox, no protected file is visible."""
    from trunkline_files import ripgrep, search_tool

    ran: list[str] = []
    search = ripgrep.search

    def noted(context: Any, wanted: Any) -> Any:
        ran.append(wanted.query)
        return search(context, wanted)

    monkeypatch.setattr(ripgrep, "search", noted)
    folder = caller.workspace
    for number in range(30):
        (folder / f"d{number % 3}" / "x").mkdir(parents=True, exist_ok=True)
        lines = "".join(
            f"line {at} of \u00c4rger {number}\r\n" if at % 7 else "needle\n" for at in range(number * 4)
        )
        (folder / f"d{number % 3}" / "x" / f"{number}.txt").write_text(lines)
    (folder / "binary").write_bytes(b"needle\0")
    (folder / ".env").write_text("needle")
    (folder / ".gitignore").write_text("d1/\nneedle\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "x").write_text("needle")
    (folder / "long").write_text("y" * 3_000 + "needle\n")
    (folder / "link").symlink_to(folder / "d0")
    for asked in (
        {"query": "needle"}, {"query": "\u00e4RGER 2", "case_sensitive": False},
        {"query": "needle", "context_lines": 2},
        {"query": r"^line (7|8|9)\b.*\d", "regex": True}, {"query": "needle", "output": "files_with_matches"},
        {"query": "needle", "output": "count"}, {"query": "needle", "include": "d1/**/*.txt"}, {"query": "absent"},
        {"query": "needle", "path": "d2"}, {"query": "needle", "max_results": 5}, {"query": "--pre=sh"},
        {"query": "of", "path": "d1/x/28.txt"},
    ):  # fmt: skip
        monkeypatch.setattr(search_tool, "QUICK_SECONDS", 30.0)
        plain = await caller.call("search_files", asked)
        monkeypatch.setattr(search_tool, "QUICK_SECONDS", -1.0)
        quick = await caller.call("search_files", asked)
        assert (quick.status, quick.output) == ("ok", plain.output), asked
    assert ran, "ripgrep was asked"
