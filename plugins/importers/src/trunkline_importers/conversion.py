"""Conversions that all importers share: times, messages and chunks from values of any type. They never raise."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import trunkline
from trunkline.api.importer import ImportGap

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECONDS = 100_000_000_000
"""A number above this counts milliseconds, not seconds."""

CHUNK_TYPES = ("fact", "preference", "pattern", "note", "decision")
ROLES = ("system", "user", "assistant", "tool")


def parse_time(value: object, otherwise: datetime = EPOCH) -> datetime:
    """A time in seconds or milliseconds since 1970, or as ISO text (taken as UTC when it does not say)."""
    try:
        if isinstance(value, bool) or value is None:
            return otherwise
        if isinstance(value, int | float) or (isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?", value)):
            number = float(value)
            return datetime.fromtimestamp(number / 1000 if number > MILLISECONDS else number, UTC)
        found = datetime.fromisoformat(str(value).strip().replace("Z", "+00:00"))
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return otherwise


def digest(*parts: str, length: int = 16) -> str:
    """A name that is always the same for the same texts."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:length]


def to_text(value: object) -> str:
    """Text that can be stored: no half characters; what is not text as JSON."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", "replace").decode("utf-8")


def as_mapping(value: object) -> Mapping[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The list, or an empty one."""
    return value if isinstance(value, list) else []


def build_message(
    id: str,
    role: object,
    content: str,
    at: datetime,
    *,
    calls: Iterable[trunkline.ToolCall] = (),
    **more: Any,
) -> trunkline.Message:
    """A message. A role that nobody knows is the assistant's."""
    known = {
        "human": "user",
        "ai": "assistant",
        "model": "assistant",
        "toolResult": "tool",
        "function": "tool",
    }
    name = known.get(str(role), str(role))
    return trunkline.Message(
        id=id,
        role=name if name in ROLES else "assistant",  # type: ignore[arg-type]
        content=to_text(content),
        created_at=at,
        tool_calls=tuple(calls),
        **more,
    )


def build_tool_call(id: object, name: object, arguments: object) -> trunkline.ToolCall:
    """A call, with arguments as an object."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = {"text": arguments}
    found = arguments if isinstance(arguments, dict) else {} if arguments is None else {"value": arguments}
    return trunkline.ToolCall(id=to_text(id), name=to_text(name) or "unknown", arguments=found)


def chunk_id(value: object, at: datetime, content: str) -> str:
    """The chunk's own id when it is one, else one made of its day and its text."""
    if isinstance(value, str) and re.fullmatch(r"chunk-\d{4}-\d{2}-\d{2}-[0-9a-f]{8}", value):
        return value
    return f"chunk-{at:%Y-%m-%d}-{digest(to_text(value), content, length=8)}"


def build_chunk(
    id: str,
    content: str,
    at: datetime,
    *,
    type: object = "note",
    tags: Iterable[object] = (),
    confidence: object = None,
    links: Iterable[dict[str, Any]] = (),
    **more: Any,
) -> bytes:
    """A chunk's file: one key a line, sorted."""
    metadata = {
        "created_at": at,
        "modified_at": at,
        "confidence": _confidence(confidence),
        "source": "import",
    }
    metadata.update({key: value for key, value in more.items() if value not in (None, "", {})})
    data = {
        "id": id,
        "content": to_text(content),
        "tokens": max(1, len(content) // 4),
        "type": type if isinstance(type, str) and re.fullmatch(r"[a-z][a-z0-9_-]{0,63}", type) else "note",
        "tags": sorted({to_text(tag) for tag in tags if tag}),
        "metadata": {key: _plain(value) for key, value in metadata.items()},
        "links": list(links),
    }
    return encode_json_file(data)


def encode_json_file(data: object) -> bytes:
    """A JSON file as memory keeps them: one key a line, sorted, ending in a newline."""
    text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False, default=str)
    return (text + "\n").encode("utf-8", "replace")


def iso(at: datetime) -> str:
    """A time as text."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def settings_gap(path: str) -> ImportGap:
    """Return the note that a settings file, which may hold keys, was not imported."""
    return ImportGap(
        what=path,
        why="settings and keys of another system are not imported",
        hint="Set models, keys and tool servers in trunkline.toml, keys by reference.",
    )


def split_curated_entries(text: str) -> str:
    """A curated memory whose entries the section sign parts, with our ``---`` between them."""
    if "§" not in text:
        return text
    entries = [entry.strip() for entry in re.split(r"\n?\s*§\s*\n?", text) if entry.strip()]
    return "\n---\n".join(entries) + "\n"


def block_name(text: object) -> str | None:
    """A name of a block, if the text can be made one."""
    name = re.sub(r"[^a-z0-9]+", "-", to_text(text).lower()).strip("-")[:32].strip("-")
    return name or None


def toml_settings(**choices: object) -> bytes:
    """A file of settings with these choices, such as a block's; an empty choice is left out."""
    lines = [f"{key} = {_toml(value)}\n" for key, value in choices.items() if value not in (None, "", [])]
    return "".join(lines).encode("utf-8", "replace")


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, list):
        return "[" + ", ".join(_toml(to_text(one)) for one in value) + "]"
    return json.dumps(to_text(value), ensure_ascii=False).replace(
        "\x7f", "\\u007f"
    )  # JSON permits it, TOML does not


def _plain(value: object) -> object:
    return iso(value) if isinstance(value, datetime) else value


def _confidence(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.7
    return float(min(1, max(0, value)))
