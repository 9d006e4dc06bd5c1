"""The names that models trained on other hosts call file tools by, and which of ours each call means.

No model is shown them. A name stands at each tool that it may mean. Whatever holds for a tool here, permissions and
approvals included, holds for its other names.
"""

from typing import Any, Literal

from trunkline import BlockPath, ToolError
from trunkline.api.tool import CanonicalCall
from trunkline_files.find_tool import find_files
from trunkline_files.read_tools import list_directory, read_file
from trunkline_files.search_tool import search_files
from trunkline_files.write_tools import (
    append_to_file,
    insert_in_file,
    preview_change,
    replace_in_file,
    write_file,
)

EVERY_FOLDER = 32


@read_file.alias
@list_directory.alias
@search_files.alias
def fs_read(
    path: BlockPath,
    mode: Literal["Line", "Directory", "Search"] = "Line",
    start_line: int = 1,
    end_line: int = -1,
    pattern: str = "",
    context_lines: int = 2,
    depth: int = 0,
) -> CanonicalCall:
    """Read lines of a file, list a folder, or search a file for a text."""
    if mode == "Directory":
        return CanonicalCall("list_directory", {"path": path, "max_depth": depth + 1})
    if mode == "Search":
        if not pattern:
            raise ToolError(
                "fs_read: the mode Search needs a pattern, the text to look for. Nothing was read.",
                kind="invalid_arguments",
            )
        around = {"context_lines": context_lines, "case_sensitive": False}
        return CanonicalCall("search_files", {"query": pattern, "path": path, **around})
    lines = {} if (start_line, end_line) == (1, -1) else {"start_line": start_line, "end_line": end_line}
    return CanonicalCall("read_file", {"path": path, **lines})


@write_file.alias
@append_to_file.alias
@insert_in_file.alias
@replace_in_file.alias
@preview_change.alias
def fs_write(
    path: BlockPath,
    command: Literal["create", "str_replace", "insert", "append"],
    file_text: str | None = None,
    old_str: str | None = None,
    new_str: str | None = None,
    insert_line: int | None = None,
    summary: str = "",
    dry_run: bool = True,
    confirmed: bool = False,
) -> CanonicalCall:
    """Write a file, or change a part of it. ``confirmed`` is nothing: only a person's own yes counts as one."""
    kind, name = _COMMANDS[command]
    text = file_text if command == "create" else new_str
    needed: dict[str, Any] = {"file_text" if command == "create" else "new_str": text}
    given: dict[str, Any] = {_TEXT[kind]: text}
    if command == "str_replace":
        needed["old_str"] = given["find"] = old_str
    if command == "insert":
        needed["insert_line"] = given["line"] = insert_line
    if missing := [parameter for parameter, value in needed.items() if value is None]:
        raise ToolError(
            f"fs_write: {command} needs {' and '.join(missing)}. Nothing was changed.",
            kind="invalid_arguments",
        )
    if not dry_run:
        return CanonicalCall(name, {"path": path, **given})
    given["text"] = given.pop(_TEXT[kind])
    return CanonicalCall("preview_change", {"path": path, "change": kind, **given})


_COMMANDS = {
    "create": ("write", "write_file"),
    "append": ("append", "append_to_file"),
    "insert": ("insert", "insert_in_file"),
    "str_replace": ("replace", "replace_in_file"),
}
_TEXT = {"write": "content", "append": "content", "insert": "text", "replace": "replace"}


@replace_in_file.alias
def file_edit(
    file_path: BlockPath, old_string: str, new_string: str, replace_all: bool = False
) -> CanonicalCall:
    """Replace a text in a file."""
    return CanonicalCall(
        "replace_in_file", {"path": file_path, "find": old_string, "replace": new_string, "all": replace_all}
    )


@find_files.alias
def glob_search(
    pattern: str, path: BlockPath = "", max_results: int = 1_000, sort_by_mtime: bool = False
) -> CanonicalCall:
    """Find files by a pattern of their names."""
    return CanonicalCall(
        "find_files",
        {
            "pattern": pattern,
            "path": path,
            "max_depth": EVERY_FOLDER,
            "max_results": max_results,
            "newest_first": sort_by_mtime,
        },
    )


@search_files.alias
def grep_search(
    pattern: str,
    path: BlockPath = "",
    file_pattern: str = "",
    case_insensitive: bool = False,
    output_mode: Literal["files_with_matches", "content", "count"] = "files_with_matches",
    context_lines: int = 0,
    max_results: int = 100,
) -> CanonicalCall:
    """Search files by a pattern of what they hold."""
    return CanonicalCall(
        "search_files",
        {
            "query": pattern,
            "path": path,
            "include": file_pattern,
            "regex": True,
            "case_sensitive": not case_insensitive,
            "output": output_mode,
            "context_lines": context_lines,
            "max_results": max_results,
        },
    )
