"""Each file tool keeps the contract of tools."""

from pathlib import Path
from typing import Any

from trunkline import Tool, ToolContext
from trunkline.testing.contexts import tool_context
from trunkline.testing.scripted_completer import ScriptedCompleter
from trunkline.testing.scripted_outgoing_files import ScriptedOutgoingFiles
from trunkline.testing.tool_suite import ToolSuite
from trunkline_files import (
    find_tool,
    image_tool,
    outgoing_tool,
    path_tools,
    read_tools,
    search_tool,
    write_tools,
)


def note(workspace: Path) -> str:
    """A file that is there, and its path."""
    (workspace / "notes").mkdir(exist_ok=True)
    (workspace / "notes" / "a.md").write_text("one\ntwo\n")
    return "notes/a.md"


class TestReadFile(ToolSuite):
    def tool(self) -> Tool:
        return read_tools.read_file

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"path": note(workspace), "offset": 1, "limit": 3}


class TestListDirectory(ToolSuite):
    def tool(self) -> Tool:
        return read_tools.list_directory

    def arguments(self, workspace: Path) -> dict[str, Any]:
        note(workspace)
        return {"path": "notes"}


class TestFileInfo(ToolSuite):
    def tool(self) -> Tool:
        return read_tools.file_info

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"path": note(workspace)}


class TestSearchFiles(ToolSuite):
    def tool(self) -> Tool:
        return search_tool.search_files

    def arguments(self, workspace: Path) -> dict[str, Any]:
        note(workspace)
        return {"query": "two", "path": "notes", "include": "*.md"}


class TestFindFiles(ToolSuite):
    def tool(self) -> Tool:
        return find_tool.find_files

    def arguments(self, workspace: Path) -> dict[str, Any]:
        note(workspace)
        return {"pattern": "*.md", "path": "notes", "max_depth": 3}


class TestSearchFilesByPattern(ToolSuite):
    def tool(self) -> Tool:
        return search_tool.search_files

    def arguments(self, workspace: Path) -> dict[str, Any]:
        note(workspace)
        return {
            "query": "t.o",
            "regex": True,
            "case_sensitive": False,
            "output": "content",
            "context_lines": 1,
            "max_results": 3,
        }


class TestDescribeImage(ToolSuite):
    def tool(self) -> Tool:
        return image_tool.describe_image

    def context(self, workspace: Path) -> ToolContext:
        return tool_context(workspace, model=ScriptedCompleter(lambda request: "A cat."))

    def arguments(self, workspace: Path) -> dict[str, Any]:
        (workspace / "cat.gif").write_bytes(b"GIF89a\1\0\1\0\x80")
        return {"image_path": "cat.gif", "question": "What is it?"}


class TestSendFile(ToolSuite):
    def tool(self) -> Tool:
        return outgoing_tool.send_file

    def context(self, workspace: Path) -> ToolContext:
        return tool_context(workspace, outgoing=ScriptedOutgoingFiles())

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"path": note(workspace)}


class TestPreviewChange(ToolSuite):
    def tool(self) -> Tool:
        return write_tools.preview_change

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {
            "path": note(workspace),
            "change": "replace",
            "text": "1",
            "find": "one",
            "line": 0,
            "all": False,
        }


class TestInsertInFile(ToolSuite):
    def tool(self) -> Tool:
        return write_tools.insert_in_file

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"path": note(workspace), "line": 1, "text": "one and a half\n"}


TestWriteFile = ToolSuite.of(write_tools.write_file, path="new/b.md", content="text")


class TestAppendToFile(ToolSuite):
    def tool(self) -> Tool:
        return write_tools.append_to_file

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"path": note(workspace), "content": "three\n"}


class TestReplaceInFile(ToolSuite):
    def tool(self) -> Tool:
        return write_tools.replace_in_file

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"path": note(workspace), "find": "one", "replace": "1", "all": True}


TestCreateDirectory = ToolSuite.of(path_tools.create_directory, path="deep/er")


class TestCopyFile(ToolSuite):
    def tool(self) -> Tool:
        return path_tools.copy_file

    def arguments(self, workspace: Path) -> dict[str, Any]:
        target = workspace / "copies" / "a.md"
        target.unlink(missing_ok=True)
        return {"source": note(workspace), "target": "copies/a.md"}


class TestMoveFile(ToolSuite):
    def tool(self) -> Tool:
        return path_tools.move_file

    def arguments(self, workspace: Path) -> dict[str, Any]:
        target = workspace / "moved.md"
        target.unlink(missing_ok=True)
        return {"source": note(workspace), "target": "moved.md"}


class TestDeleteFile(ToolSuite):
    def tool(self) -> Tool:
        return path_tools.delete_file

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"path": note(workspace)}
