"""nanobot: a workspace of Markdown, and sessions whose first line is about the session."""

import re
from collections.abc import Iterator
from typing import Any

import trunkline
from trunkline.api.importer import ImportedConversation, Importer, Source
from trunkline_importers import workspaces
from trunkline_importers.conversion import (
    as_list,
    as_mapping,
    build_message,
    build_tool_call,
    parse_time,
    settings_gap,
    to_text,
)

SESSION = re.compile(r"(?:.*/)?sessions/([^/]+)\.jsonl")


class Nanobot(Importer):
    """Instructions, soul, user, long-term memory and its history, skills, sessions."""

    name = "nanobot"
    title = "nanobot"

    def recognises(self, source: Source) -> bool:
        """Its memory lies in ``memory/MEMORY.md`` beside a soul, or its sessions begin with their metadata."""
        root = workspaces.find_root(source, "workspace")
        if source.has(f"{root}memory/MEMORY.md") and source.has(f"{root}SOUL.md"):
            return True
        sessions = [path for path in source.paths if SESSION.fullmatch(path) and "/agents/" not in f"/{path}"]
        return any(b'"_type"' in source.data(path)[:2_000] for path in sessions[:3])

    def read(self, source: Source) -> Iterator[Any]:
        """All of it."""
        yield from workspaces.workspace_files(source, workspaces.find_root(source, "workspace"), self.name)
        for path in source.paths:
            if found := SESSION.fullmatch(path):
                yield _session(list(source.lines(path)), found[1], path)
            elif path == "config.json":
                source.used.add(path)
                yield settings_gap(path)


def _session(lines: list[Any], name: str, path: str) -> ImportedConversation:
    heads = [as_mapping(line) for line in lines if as_mapping(line).get("_type") == "metadata"]
    head = heads[0] if heads else {}
    id = f"nanobot-{name}"
    messages: list[trunkline.Message] = []
    began = parse_time(head.get("created_at"))
    for line in map(as_mapping, lines):
        if not line.get("role"):
            continue
        at = parse_time(line.get("timestamp"), messages[-1].created_at if messages else began)
        messages.append(chat_message(line, f"{id}-{len(messages)}", at))
    title = to_text(head.get("key")) or name
    return ImportedConversation(id=id, title=title, messages=messages, created_at=began, source=path)


def chat_message(line: Any, id: str, at: Any) -> trunkline.Message:
    """A message in the words of OpenAI's chat interface."""
    content = line.get("content")
    parts = [to_text(as_mapping(part).get("text")) for part in as_list(content)]
    calls = [
        build_tool_call(
            call.get("id"),
            as_mapping(call.get("function")).get("name"),
            as_mapping(call.get("function")).get("arguments"),
        )
        for call in map(as_mapping, as_list(line.get("tool_calls")))
    ]
    more = {}
    if line.get("role") == "tool":
        more = {"tool_call_id": to_text(line.get("tool_call_id")), "name": to_text(line.get("name")) or None}
    text = "\n".join(parts) if isinstance(content, list) else to_text(content)
    return build_message(id, line.get("role"), text, at, calls=calls, **more)
