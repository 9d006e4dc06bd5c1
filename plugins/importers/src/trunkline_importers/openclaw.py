"""OpenClaw (and its earlier names): a workspace of Markdown, and session logs of one JSON object a line."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import trunkline
from trunkline.api.importer import ImportedConversation, ImportedFile, Importer, ImportGap, Source
from trunkline.api.memory import block_file_path
from trunkline_importers import workspaces
from trunkline_importers.conversion import (
    as_list,
    as_mapping,
    block_name,
    build_message,
    build_tool_call,
    parse_time,
    settings_gap,
    to_text,
    toml_settings,
)

Items = Iterator[ImportedConversation | ImportedFile | ImportGap]
SETTINGS = ("openclaw.json", "clawdbot.json", "moltbot.json")
OWN = ("IDENTITY.md", "HEARTBEAT.md", "BOOTSTRAP.md", "TOOLS.md", "MEMORY.md")
"""Files that only OpenClaw's workspaces have beside soul and instructions. A nanobot's memory is in a folder."""
SESSION = re.compile(r"(?:.*/)?agents/([^/]+)/sessions/([^/]+)\.jsonl")


class OpenClaw(Importer):
    """Instructions, soul, user, memory, daily notes, skills; what every agent said."""

    name = "openclaw"
    title = "OpenClaw"

    def recognises(self, source: Source) -> bool:
        """The state folder by its settings or sessions, the workspace by its files."""
        if any(source.has(name) for name in SETTINGS) or any(map(SESSION.fullmatch, source.paths)):
            return True
        own = [source.has(name) for name in OWN]
        return source.has("SOUL.md") and source.has("AGENTS.md") and any(own)

    def read(self, source: Source) -> Items:
        """All of it."""
        yield from workspaces.workspace_files(source, workspaces.find_root(source, "workspace"), self.name)
        blocks: set[str] = set()
        for path in source.paths:
            if found := SESSION.fullmatch(path):
                block = source.block if found[1] == "main" else block_name(found[1]) or source.block
                blocks.add(block)
                yield _session(list(source.lines(path)), f"openclaw-{found[1]}-{found[2]}", block, path)
            elif path.rpartition("/")[2] in (*SETTINGS, "sessions.json"):
                source.used.add(path)
                if path in SETTINGS:
                    yield settings_gap(path)
        for block in sorted(blocks - {source.block}):
            data = toml_settings(description=f"The agent {block} of OpenClaw")
            yield ImportedFile(path=block_file_path(block), data=data, source=f"agents/{block}")


def _session(lines: list[Any], id: str, block: str, path: str) -> ImportedConversation:
    head = next((as_mapping(line) for line in lines if as_mapping(line).get("type") == "session"), {})
    messages: list[trunkline.Message] = []
    for number, line in enumerate(map(as_mapping, lines)):
        if line.get("type") == "message":
            messages.append(_message(line, f"{id}-{line.get('id') or number}"))
    return ImportedConversation(
        id=id,
        block=block,
        messages=messages,
        created_at=parse_time(head.get("timestamp"), messages[0].created_at) if messages else None,
        source=path,
    )


def _message(line: Mapping[str, Any], id: str) -> trunkline.Message:
    said = as_mapping(line.get("message"))
    at = parse_time(line.get("timestamp") or said.get("timestamp"))
    content = said.get("content")
    parts = [as_mapping(part) for part in as_list(content)]
    texts = [to_text(part.get("text")) for part in parts if part.get("type") == "text"]
    text = content if isinstance(content, str) else "\n".join(texts)
    calls = [
        build_tool_call(part.get("id"), part.get("name"), part.get("arguments", part.get("input")))
        for part in parts
        if part.get("type") in ("toolCall", "tool_use")
    ]
    more: dict[str, Any] = {}
    if said.get("role") == "toolResult":
        more = {
            "tool_call_id": to_text(said.get("toolCallId")),
            "name": to_text(said.get("toolName")) or None,
        }
        more["error"] = bool(said.get("isError"))
    return build_message(id, said.get("role"), text, at, calls=calls, **more)
