"""memoryblock: a workspace of blocks, each a folder with identity, memory, chats and logs."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import trunkline
from trunkline.api.importer import ImportedConversation, ImportedFile, Importer, ImportGap, Source
from trunkline.api.memory import BLOCK_NAME, block_folder
from trunkline_importers.conversion import (
    as_list,
    as_mapping,
    build_message,
    parse_time,
    to_text,
)
from trunkline_importers.memoryblock_schedules import SCHEDULE_FILES, read_schedules
from trunkline_importers.memoryblock_settings import read_block_settings

BLOCK = re.compile(rf"(?:ws/)?blocks/({BLOCK_NAME})/([^/]+(?:/[^/]+)?)")
LINE = re.compile(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\] \[CHANNEL:([^\]]*)\] \[FROM:(user|monitor)[^\]]*\]"
    r"(?: \[[A-Z]+:[^\]]*\])*\s?(.*)"
)
PASSING = (
    ".stream",
    ".lock",
    "daemon.pid",
    "daemon-debug.log",
    "daemon-debug-error.log",
    "costs.json",
    "session.json",
)
SECRETS = ("auth.json", ".api-token")


class MemoryBlock(Importer):
    """Blocks with what their monitors are and know, their schedules, what was said in them, and the founder."""

    name = "memoryblock"
    title = "memoryblock"

    def recognises(self, source: Source) -> bool:
        """Blocks have a monitor, and beside them stands the founder."""
        monitors = any(
            re.fullmatch(r"(?:ws/)?blocks/[^/]+/(monitor\.md|pulse\.json)", path) for path in source.paths
        )
        return monitors and not source.has("AGENT.md")

    def read(self, source: Source) -> Iterator[Any]:
        """All of it."""
        schedules: dict[str, set[str]] = {}
        for path in source.paths:
            found = BLOCK.fullmatch(path)
            if found and found[2] in SCHEDULE_FILES:
                taken = schedules.setdefault(found[1], set())
                yield from read_schedules(source.json(path), found[1], path, taken)
                source.used.discard(
                    path
                )  # kept unchanged too: when each ran last has no place in a schedule's file
            elif found:
                yield from _of_block(source, path, found[1], found[2])
            elif path.rpartition("/")[2] == "founder.md":
                yield ImportedFile(path="identity/USER.md", data=source.data(path), source=path)
            elif path.rpartition("/")[2] in SECRETS:
                source.used.add(path)
                yield ImportGap(
                    what=path, why="keys are never imported", hint="Set them by reference in trunkline.toml."
                )


def _of_block(source: Source, path: str, block: str, name: str) -> Iterator[Any]:
    if name in ("monitor.md", "memory.md"):
        yield ImportedFile(path=f"{block_folder(block)}/{name}", data=source.data(path), source=path)
    elif name == "config.json":
        yield from read_block_settings(as_mapping(source.json(path)), block, path)
    elif name == "chat.json":
        yield _chat(source.json(path), block, path, source.changed(path))
    elif name.startswith("logs/") and name.endswith(".txt"):
        yield _log(source.text(path), block, name.removeprefix("logs/").removesuffix(".txt"), path)
    elif name in PASSING:
        source.used.add(path)


def _chat(value: object, block: str, path: str, otherwise: datetime) -> ImportedConversation:
    id = f"memoryblock-{block}-web"
    messages: list[trunkline.Message] = []
    for number, entry in enumerate(
        map(as_mapping, as_list(value) or as_list(as_mapping(value).get("messages")))
    ):
        at = parse_time(entry.get("timestamp"), messages[-1].created_at if messages else otherwise)
        messages.append(build_message(f"{id}-{number}", entry.get("role"), to_text(entry.get("content")), at))
    return ImportedConversation(id=id, block=block, title="Web chat", messages=messages, source=path)


def _log(text: str, block: str, name: str, path: str) -> ImportedConversation:
    """A log's lines; what follows a line without a head belongs to it."""
    id = f"memoryblock-{block}-{name}"
    said: list[tuple[str, datetime, list[str]]] = []
    for line in text.splitlines():
        if found := LINE.fullmatch(line):
            said.append(("user" if found[3] == "user" else "assistant", parse_time(found[1]), [found[4]]))
        elif said:
            said[-1][2].append(line)
    messages = [
        build_message(f"{id}-{number}", role, "\n".join(lines).strip(), at)
        for number, (role, at, lines) in enumerate(said)
    ]
    return ImportedConversation(id=id, block=block, title=name, messages=messages, source=path)
