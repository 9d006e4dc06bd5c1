"""Hermes Agent: soul, curated memories, skills, and sessions in a database or one JSON file each."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import trunkline
from trunkline.api.importer import ImportedConversation, Importer, Source
from trunkline_importers import workspaces
from trunkline_importers.conversion import as_list, as_mapping, parse_time, settings_gap, to_text
from trunkline_importers.nanobot import chat_message
from trunkline_importers.sqlite_files import open_database

SESSION = re.compile(r"sessions/(?:session_)?([^/]+)\.(jsonl?)")
SETTINGS = ("config.yaml", "cli-config.yaml", "gateway.json")


class Hermes(Importer):
    """Importer for the memory, identity, skills and sessions of Hermes."""

    name = "hermes"
    title = "Hermes Agent"

    def recognises(self, source: Source) -> bool:
        """Memories in a folder of that name, or its database beside its settings."""
        if source.has("memories/MEMORY.md") or source.has("memories/USER.md"):
            return True
        return source.has("state.db") and (source.has("config.yaml") or source.has("SOUL.md"))

    def read(self, source: Source) -> Iterator[Any]:
        """All of it; a session that is in the database is not read from its file again."""
        yield from workspaces.workspace_files(source, "", self.name)
        known: set[str] = set()
        if source.has("state.db"):
            for talk in _stored(source):
                known.add(talk.id)
                yield talk
        for path in source.paths:
            if (found := SESSION.fullmatch(path)) and f"hermes-{found[1]}" not in known:
                yield _written(source, path, f"hermes-{found[1]}", found[2])
            elif found:
                source.used.add(path)
            elif path in SETTINGS:
                source.used.add(path)
                yield settings_gap(path)


def _stored(source: Source) -> Iterator[ImportedConversation]:
    with open_database(source, "state.db") as found:
        lines: dict[str, list[trunkline.Message]] = {}
        for row in found.rows("messages", order="id"):
            session = to_text(row.get("session_id"))
            talk = lines.setdefault(session, [])
            line = {**row, "tool_calls": _decoded(row.get("tool_calls")), "name": row.get("tool_name")}
            talk.append(
                chat_message(line, f"hermes-{session}-{row.get('id')}", parse_time(row.get("timestamp")))
            )
        for row in found.rows("sessions", order="id"):
            id = to_text(row.get("id"))
            if lines.get(id):
                yield ImportedConversation(
                    id=f"hermes-{id}",
                    title=to_text(row.get("title")) or None,
                    created_at=parse_time(row.get("started_at"), lines[id][0].created_at),
                    messages=lines[id],
                    source=f"state.db: {id}",
                )


def _decoded(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None


def _written(source: Source, path: str, id: str, format: str) -> ImportedConversation:
    head: Mapping[str, Any] = {}
    if format == "jsonl":
        lines = [as_mapping(line) for line in source.lines(path)]
    else:
        head = as_mapping(source.json(path))
        lines = [as_mapping(line) for line in as_list(head.get("messages"))]
    began = parse_time(head.get("session_start"), source.changed(path))
    messages = [
        chat_message(line, f"{id}-{number}", parse_time(line.get("timestamp"), began))
        for number, line in enumerate(line for line in lines if line.get("role"))
    ]
    return ImportedConversation(id=id, messages=messages, created_at=began, source=path)
