"""CrevnClaw: directives, and a database of conversations, facts and costs."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

import trunkline
from trunkline.api.importer import ImportedConversation, ImportedFile, Importer, Source
from trunkline_importers.conversion import (
    as_mapping,
    build_chunk,
    build_message,
    chunk_id,
    parse_time,
    settings_gap,
    to_text,
)
from trunkline_importers.sqlite_files import SqliteTables, open_database

FILES = {"identity/SOUL.md": "identity/SOUL.md", "identity/AGENTS.md": "AGENT.md"}
DATABASE = "crevnclaw.db"


class CrevnClaw(Importer):
    """Imports soul, instructions, conversations and facts. Vectors are not imported; they are recomputed."""

    name = "crevnclaw"
    title = "CrevnClaw"

    def recognises(self, source: Source) -> bool:
        """By its database, or its two directives beside its settings."""
        named = [path for path in source.paths if path.rpartition("/")[2] == DATABASE]
        return bool(named) or (source.has("identity/AGENTS.md") and source.has("config.json"))

    def read(self, source: Source) -> Iterator[Any]:
        """All of it."""
        for path, target in FILES.items():
            if source.has(path):
                yield ImportedFile(path=target, data=source.data(path), source=path)
        for path in source.paths:
            if path.rpartition("/")[2] == DATABASE:
                with open_database(source, path) as found:
                    yield from _conversations(found, path)
                    yield from _facts(found, path)
                    yield from _ledger(found, path)
            elif path in ("config.json", ".pairing-token"):
                source.used.add(path)
                yield settings_gap(path)


def _about(value: object) -> Mapping[str, Any]:
    try:
        return as_mapping(json.loads(value)) if isinstance(value, str) else as_mapping(value)
    except ValueError:
        return {}


def _conversations(tables: SqliteTables, path: str) -> Iterator[ImportedConversation]:
    talks: dict[str, list[trunkline.Message]] = {}
    for row in tables.rows("conversations", order="created_at"):
        session = to_text(row.get("session_id"))
        talk = talks.setdefault(session, [])
        id = to_text(row.get("id")) or str(len(talk))
        text, about = to_text(row.get("content")), _about(row.get("metadata"))
        tool: dict[str, Any] = {}
        if row.get("role") == "tool":
            tool["tool_call_id"] = to_text(about.get("tool_call_id")) or id
        talk.append(
            build_message(
                f"crevnclaw-{session}-{id}", row.get("role"), text, parse_time(row.get("created_at")), **tool
            )
        )
    for session, talk in talks.items():
        yield ImportedConversation(
            id=f"crevnclaw-{session}", messages=talk, source=f"{path}: session {session}"
        )


def _facts(tables: SqliteTables, path: str) -> Iterator[ImportedFile]:
    for row in tables.rows("vectors", order="id"):
        content, about = to_text(row.get("content")), _about(row.get("metadata"))
        if content.strip():
            at = parse_time(about.get("timestamp"))
            id = chunk_id(f"crevnclaw-{row.get('id')}", at, content)
            data = build_chunk(
                id, content, at, type="fact", confidence=about.get("confidence"), tags=["crevnclaw"]
            )
            source = f"{path}: vectors {row.get('id')} ({to_text(about.get('source'))[:80]})"
            yield ImportedFile(path=f"chunks/{id[6:16]}/{id}.json", data=data, source=source)


def _ledger(tables: SqliteTables, path: str) -> Iterator[ImportedFile]:
    rows = list(tables.rows("ledger", order="created_at"))
    if rows:
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        data = text.getvalue().encode()
        yield ImportedFile(path="imported/crevnclaw/ledger.csv", data=data, source=f"{path}: ledger")
