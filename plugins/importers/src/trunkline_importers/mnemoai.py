"""mnemoai: curated memory, saved conversations, profile, and per model a playbook and episodes."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import trunkline
from trunkline.api.importer import ImportedConversation, ImportedFile, Importer, Source
from trunkline_importers.conversion import (
    as_list,
    as_mapping,
    build_message,
    build_tool_call,
    digest,
    encode_json_file,
    iso,
    parse_time,
    settings_gap,
    split_curated_entries,
    to_text,
)
from trunkline_importers.mnemoai_prompts import read_prompts

CONVERSATION = re.compile(r"(?:[^/]+/)?conversations/([^/]+)\.json")
PROFILE = re.compile(r"(?:[^/]+/)?profiles/([^/]+)\.json")
LEARNED = re.compile(r"(?:[^/]+/)?models/([^/]+)/(playbook|episodic_memory)/(?:.*/)?([^/]+)\.json")
EPISODE = re.compile(r"Task:\s*(.*?)\s*Tools used:\s*(.*?)\s*Outcome:\s*(.*)", re.DOTALL | re.IGNORECASE)
DERIVED = re.compile(r".*\.(faiss|pkl|bin)|.*(chunk_cache_|rag_store_).*|.*rag_session_id\.txt|.*\.sqlite3")


class MnemoAi(Importer):
    """Imports all learned facts and all conversations."""

    name = "mnemoai"
    title = "mnemoai"

    def recognises(self, source: Source) -> bool:
        """Per-model memory, or its settings beside its curated memory."""
        learned = any(map(LEARNED.fullmatch, source.paths))
        return learned or (
            source.has("config/config.yaml") and (source.has("MEMORY.md") or source.has("mcp/mcp.json"))
        )

    def read(self, source: Source) -> Iterator[Any]:
        """All of it."""
        profiles = [path for path in source.paths if PROFILE.fullmatch(path)]
        for path in source.paths:
            if found := LEARNED.fullmatch(path):
                yield from _learned(source.json(path), found[1], found[2], path, source)
            elif found := CONVERSATION.fullmatch(path):
                yield _conversation(as_mapping(source.json(path)), found[1], path, source.changed(path))
            elif path == "MEMORY.md":
                text = split_curated_entries(source.text(path))
                yield ImportedFile(path="MEMORY.md", data=text.encode(), source=path)
            elif path.startswith("skills/") and path.count("/") > 1:
                yield ImportedFile(path=path, data=source.data(path), source=path)
            elif path in ("prompts.yaml", "config/prompts.yaml"):
                yield from read_prompts(source.text(path), path)
                source.used.discard(path)  # kept unchanged too: some prompts have no place here
            elif path in ("config/config.yaml", "mcp/mcp.json"):
                source.used.add(path)
                yield settings_gap(path)
            elif DERIVED.fullmatch(path):
                source.used.add(path)
        if profiles:
            newest = max(profiles, key=lambda path: source.changed(path))
            yield _profile(as_mapping(source.json(newest)), newest, source.changed(newest))


def _conversation(row: Mapping[str, Any], name: str, path: str, otherwise: datetime) -> ImportedConversation:
    id = f"mnemoai-{name}"
    stamp = re.search(r"(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)", name)
    at = parse_time("{}-{}-{}T{}:{}:{}".format(*stamp.groups())) if stamp else otherwise
    messages: list[trunkline.Message] = []
    for number, said in enumerate(map(as_mapping, as_list(row.get("messages")))):
        messages += _messages(said, f"{id}-{number}", at)
    return ImportedConversation(id=id, created_at=at, messages=messages, source=path)


def _messages(row: Mapping[str, Any], id: str, at: datetime) -> list[trunkline.Message]:
    content = row.get("content")
    parts = [as_mapping(part) for part in as_list(content)] or [{"text": to_text(content)}]
    text = "\n".join(to_text(part.get("text")) for part in parts if part.get("text"))
    used = [as_mapping(part["toolUse"]) for part in parts if "toolUse" in part]
    done = [as_mapping(part["toolResult"]) for part in parts if "toolResult" in part]
    calls = [build_tool_call(call.get("toolUseId"), call.get("name"), call.get("input")) for call in used]
    found = [build_message(id, row.get("role"), text, at, calls=calls)] if text or calls else []
    for number, result in enumerate(done):
        said_back = "\n".join(
            to_text(as_mapping(one).get("text") or one) for one in as_list(result.get("content"))
        )
        found.append(
            build_message(
                f"{id}-r{number}", "tool", said_back, at, tool_call_id=to_text(result.get("toolUseId"))
            )
        )
    return found


def _learned(value: object, model: str, kind: str, path: str, source: Source) -> Iterator[Any]:
    folder = re.sub(r"[^A-Za-z0-9._-]", "_", model)[:64]
    otherwise = source.changed(path)
    if kind == "playbook":
        entries = (
            as_list(value)
            or as_list(as_mapping(value).get("entries"))
            or as_list(as_mapping(value).get("strategies"))
        )
        for entry in map(as_mapping, entries):
            if entry.get("strategy"):
                yield _strategy(entry, folder, path, otherwise)
        return
    for text, about in _texts(value):
        match = EPISODE.search(text)
        if match:
            yield _episode(match, about, folder, path, otherwise)


def _strategy(entry: Mapping[str, Any], folder: str, path: str, otherwise: datetime) -> ImportedFile:
    text = to_text(entry.get("strategy"))
    failed = entry.get("outcome") == "failure" or "fail" in to_text(entry.get("source"))
    id = f"{'pit' if failed else 'str'}-{digest(text, to_text(entry.get('context')), length=8)}"
    data = {
        "id": id,
        "section": "pitfalls" if failed else "strategies",
        "strategy": text[:500],
        "context": to_text(entry.get("context"))[:500],
        "tools": [to_text(tool) for tool in as_list(entry.get("tools"))],
        "outcome": "failure" if failed else "success",
        "confidence": min(1.0, max(0.0, float(entry.get("confidence") or 0.8))),
        "source": "heuristic",
        "timestamp": iso(parse_time(entry.get("timestamp"), otherwise)),
    }
    return ImportedFile(path=f"models/{folder}/playbook/{id}.json", data=encode_json_file(data), source=path)


def _texts(value: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The texts in a store's list of entries, however it is nested, with what is said of each."""
    if isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        text = value.get("text") or value.get("content") or value.get("page_content")
        if isinstance(text, str):
            yield text, {**as_mapping(value.get("metadata")), **value}
        else:
            for one in value.values():
                yield from _texts(one)
    elif isinstance(value, str) and EPISODE.search(value):
        yield value, {}


def _episode(
    match: "re.Match[str]", about: Mapping[str, Any], folder: str, path: str, otherwise: datetime
) -> ImportedFile:
    at = parse_time(about.get("timestamp") or about.get("created_at"), otherwise)
    id = f"ep-{digest(match[0], length=16)}"
    tools = [tool.strip() for tool in match[2].split(",") if tool.strip() and tool.strip().lower() != "none"]
    outcome = match[3].strip()
    verdict = next((word for word in ("success", "failure") if outcome.lower().startswith(word)), "unknown")
    data = {
        "id": id, "task": match[1].strip(), "tools": tools, "outcome": outcome, "verdict": verdict, "judged_by": "",
        "model": folder, "created_at": iso(at),
        "source": {"block": "main", "conversation": "mnemoai", "turn": id},
    }  # fmt: skip
    target = f"models/{folder}/episodes/{at:%Y-%m-%d}/{id}.json"
    return ImportedFile(path=target, data=encode_json_file(data), source=path)


def _profile(values: Mapping[str, Any], path: str, otherwise: datetime) -> ImportedFile:
    data = {**values}
    for key in ("created_at", "last_updated"):
        data[key] = iso(parse_time(values.get(key), otherwise))
    data["top_domains"] = [
        {**domain, "last_seen": iso(parse_time(domain.get("last_seen"), otherwise))}
        for domain in map(as_mapping, as_list(values.get("top_domains")))
    ]
    return ImportedFile(path="profile.json", data=encode_json_file(data), source=path)
