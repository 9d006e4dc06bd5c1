"""The files with well-known names that the workspaces of OpenClaw, nanobot and similar agents share."""

import re
from collections.abc import Iterator

from trunkline.api.importer import ImportedFile, Source
from trunkline.api.memory import block_folder
from trunkline_importers.conversion import split_curated_entries

PLACES = {
    "AGENTS.md": "AGENT.md",
    "AGENT.md": "AGENT.md",
    "SOUL.md": "identity/SOUL.md",
    "USER.md": "identity/USER.md",
    "MEMORY.md": "MEMORY.md",
    "memory/MEMORY.md": "MEMORY.md",
    "memories/MEMORY.md": "MEMORY.md",
    "memories/USER.md": "identity/USER.md",
}
"""The paths of the files in this memory."""


def workspace_files(source: Source, root: str, system: str) -> Iterator[ImportedFile]:
    """The files of a workspace below ``root`` ("" or a path that ends in ``/``)."""
    for path in source.paths:
        if not path.startswith(root):
            continue
        name = path.removeprefix(root)
        target = PLACES.get(name) or _target_path(name, source.block, system)
        if target is not None:
            data = source.data(path)
            if target == "MEMORY.md":
                data = split_curated_entries(data.decode("utf-8", "replace")).encode()
            yield ImportedFile(path=target, data=data, source=path)


def _target_path(name: str, block: str, system: str) -> str | None:
    if name == "IDENTITY.md":
        return f"{block_folder(block)}/monitor.md"
    if re.fullmatch(r"memory/.+\.md", name):
        return f"documents/{system}/{name}"
    if re.fullmatch(r"skills/[^/]+/.+", name) and not name.endswith((".pyc", ".png", ".jpg")):
        return name
    return None


def find_root(source: Source, *names: str) -> str:
    """The workspace's root in the source: the first of these folders that has known files, or the source itself."""
    for name in names:
        if any(source.has(f"{name}/{file}") for file in PLACES):
            return f"{name}/"
    return ""
