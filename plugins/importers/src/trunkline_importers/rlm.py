"""RLM-MEM: chunks, one JSON file each, in the layout of its design or of its program; and layers, one JSON object a
line. Indexes are not imported; they are rebuilt."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from trunkline.api.importer import ImportedFile, Importer, Source
from trunkline.api.memory import block_folder
from trunkline_importers.conversion import (
    as_list,
    as_mapping,
    build_chunk,
    chunk_id,
    digest,
    iso,
    parse_time,
    to_text,
)

CHUNK = re.compile(r"(?:.*/)?(?:(\d{4}-\d\d(?:-\d\d)?)/|(archive)/)(?:.*/)?(chunk-[\w.-]+)\.json")
LAYER = re.compile(r"(?:.*/)?(?:agents/([^/]+)|global)/memory\.jsonl")
INDEX = re.compile(r"(?:.*/)?(?:index\.json|(?:tags|links|index)/[^/]+\.json)")
PERSONALITY = re.compile(r"(?:.*/)?personalit(?:y|ies)/([^/]+\.md)")
AGENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")


class RlmMem(Importer):
    """Chunks with their types, tags and links; archived ones stay archived; agents' own stay their own."""

    name = "rlm-mem"
    title = "RLM-MEM"

    def recognises(self, source: Source) -> bool:
        """Chunks in folders by day or month, or layers."""
        if source.has("AGENT.md"):
            return False  # ours: it has chunks too
        return any(CHUNK.fullmatch(path) or LAYER.fullmatch(path) for path in source.paths)

    def read(self, source: Source) -> Iterator[Any]:
        """All of it. Names are given first, so that links find their ends."""
        found = [(path, match) for path in source.paths if (match := CHUNK.fullmatch(path))]
        read = [(path, match, as_mapping(source.json(path))) for path, match in found]
        names = {match[3]: _id(raw, match[3]) for _, match, raw in read if raw}
        names.update({to_text(raw["id"]): _id(raw, match[3]) for _, match, raw in read if raw.get("id")})
        for path, match, raw in read:
            if not to_text(raw.get("content")):
                source.trouble(path, "it is not a valid chunk")
                continue
            folder = "chunks/archive" if match[2] else "chunks"
            yield _chunk(raw, names[match[3]], names, folder, path)
        for path in source.paths:
            if layer := LAYER.fullmatch(path):
                yield from _layer(source, path, layer[1])
            elif INDEX.fullmatch(path):
                source.used.add(path)
            elif persona := PERSONALITY.fullmatch(path):
                yield ImportedFile(path=f"personalities/{persona[1]}", data=source.data(path), source=path)


def _at(raw: Mapping[str, Any], otherwise: datetime | None = None) -> datetime:
    about = as_mapping(raw.get("metadata"))
    created = about.get("created_at") or about.get("created") or raw.get("created_at")
    return parse_time(created) if otherwise is None else parse_time(created, otherwise)


def _id(raw: Mapping[str, Any], name: str) -> str:
    return chunk_id(raw.get("id") or name, _at(raw), to_text(raw.get("content")))


def _chunk(raw: Mapping[str, Any], id: str, names: Mapping[str, str], folder: str, path: str) -> ImportedFile:
    about, at = as_mapping(raw.get("metadata")), _at(raw)
    data = build_chunk(
        id,
        to_text(raw.get("content")),
        at,
        type=raw.get("type"),
        tags=as_list(raw.get("tags")),
        confidence=about.get("confidence"),
        links=_links(raw.get("links"), names, at),
        modified_at=parse_time(about.get("modified_at") or about.get("modified"), at),
        conversation_id=to_text(about.get("conversation_id")),
    )
    return ImportedFile(path=f"{folder}/{id[6:16]}/{id}.json", data=data, source=path)


def _links(links: object, names: Mapping[str, str], at: datetime) -> list[dict[str, Any]]:
    """Links as a list of objects, or as lists of ids by type."""
    if isinstance(links, dict):
        links = [
            {"target_id": target, "type": kind} for kind, ids in links.items() for target in as_list(ids)
        ]
    found = []
    for link in map(as_mapping, as_list(links)):
        target = names.get(to_text(link.get("target_id")))
        if target is not None and link.get("type") not in ("context_of", "follows", "related_to"):
            strength = link.get("strength")
            found.append(
                {
                    "target_id": target,
                    "type": to_text(link.get("type")) or "supports",
                    "strength": float(strength) if isinstance(strength, int | float) else 1.0,
                    "created_at": iso(parse_time(link.get("created_at"), at)),
                }
            )
    return found


def _layer(source: Source, path: str, agent: str | None) -> Iterator[Any]:
    bad = 0
    for record in map(as_mapping, source.lines(path)):
        content, id = to_text(record.get("content")), to_text(record.get("id"))
        if not content or not id:
            bad += 1
            continue
        at = parse_time(record.get("created_at"), source.changed(path))
        name = chunk_id(id, at, content)
        expires = record.get("expires_at")
        data = build_chunk(
            name,
            content,
            at,
            type=record.get("entry_type") or record.get("type"),
            tags=as_list(record.get("tags")),
            confidence=record.get("confidence"),
            expires_at=parse_time(expires) if expires else None,
        )
        place = _place(to_text(record.get("scope")), to_text(record.get("agent_id")) or agent, source.block)
        yield ImportedFile(path=f"{place}chunks/{name[6:16]}/{name}.json", data=data, source=f"{path}: {id}")
    if bad:
        source.trouble(path, f"{bad} of its lines are not valid records")


def _place(scope: str, agent: str | None, block: str) -> str:
    """Return the layer's place in this memory: a project becomes a block, the user the whole memory."""
    folder = f"{block_folder(block)}/" if scope.startswith("project") else ""
    if scope.endswith("agent") and agent:
        name = agent if AGENT.fullmatch(agent) else f"agent-{digest(agent, length=8)}"
        folder += f"agents/{name}/"
    return folder
