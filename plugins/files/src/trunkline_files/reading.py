"""Looking at files and folders: ``read_file``, ``list_directory``, ``file_info``. Nothing here changes anything."""

from typing import Annotated

from msgspec import Meta

from trunkline import BlockPath, ToolContext, ToolError, tool
from trunkline_files.texts import counted, is_binary, part_of
from trunkline_files.workspace import opened

LONGEST_READ = 100_000
MOST_ENTRIES = 2_000

Offset = Annotated[int, Meta(ge=0)]
Limit = Annotated[int, Meta(ge=1, le=LONGEST_READ)]


@tool(effect="read")
def read_file(context: ToolContext, path: BlockPath, offset: Offset = 0, limit: Limit = LONGEST_READ) -> str:
    """Read a text file of the workspace, at most 100000 characters at a time.

    Args:
        path: The file, relative to the workspace.
        offset: How many characters to skip; a cut result says where to go on.
        limit: How many characters to read at most.
    """
    with opened(context) as folder:
        if folder.stat(path).kind == "folder":
            raise ToolError(f"{path!r} is a folder. list_directory shows what is in it.")
        with folder.open_read(path) as file:
            text, more = part_of(file, path, offset, limit)
    end = offset + len(text)
    if more:
        return f"{text}\n\n[Cut here: this is characters {offset} to {end}. Read on with offset={end}.]"
    if offset and not text:
        return f"[The file has no more than {offset} characters.]"
    return text


@tool(effect="read")
def list_directory(context: ToolContext, path: BlockPath = "") -> str:
    """List what a folder of the workspace holds: folders end with /, files come with their size in bytes.

    Args:
        path: The folder, relative to the workspace; empty for the workspace itself.
    """
    with opened(context) as folder:
        entries = folder.listdir(path)
    if not entries:
        return "The folder is empty."
    lines = []
    for entry in entries[:MOST_ENTRIES]:
        name = entry.path.rpartition("/")[2]
        lines.append(f"{name}/" if entry.kind == "folder" else f"{name}  {_size(entry.kind, entry.size)}")
    if len(entries) > MOST_ENTRIES:
        lines.append(f"[Cut here: {len(entries) - MOST_ENTRIES} more. find_files finds by name.]")
    return "\n".join(lines)


@tool(effect="read")
def file_info(context: ToolContext, path: BlockPath) -> str:
    """Tell about a file or folder of the workspace: kind, size, when it was changed, and whether it is text.

    Args:
        path: The file or folder, relative to the workspace.
    """
    with opened(context) as folder:
        entry = folder.stat(path)
        if entry.kind == "link":
            raise ToolError(f"{path!r} is a symbolic link, which is not followed. Name the file itself.")
        lines = [f"path: {entry.path or '.'}", f"kind: {entry.kind}"]
        if entry.kind == "folder":
            lines.append(f"holds: {counted(len(folder.listdir(path)), 'entry').replace('entrys', 'entries')}")
        else:
            lines.append(f"size: {entry.size} bytes")
        if entry.kind == "file":
            lines.append(f"text: {'no' if is_binary(folder.read_bytes(path, limit=8192)) else 'yes'}")
        lines.append(f"changed: {entry.modified_at:%Y-%m-%d %H:%M:%S} UTC")
    return "\n".join(lines)


def _size(kind: str, size: int) -> str:
    return f"{size}" if kind == "file" else f"({kind})"
