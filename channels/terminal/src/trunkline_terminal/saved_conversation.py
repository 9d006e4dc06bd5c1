"""Saved conversations: ``{messages: [{role, content: [{text} | {toolUse} | {toolResult}]}], tools: [...]}``.

The format is the one of mnemoai's ``/save``, so its files can be loaded here. Ids, times and metadata are not in it.
"""

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from trunkline import Message, ToolCall, TrunklineError, new_id

MAX_FILE_BYTES = 64 * 1024 * 1024
"""The largest file that is loaded, in bytes."""

MAX_OFFERED = 20
"""The largest number of saved conversations to pick from."""


class SavedConversationError(TrunklineError):
    """A file cannot be saved or is not a saved conversation."""


def save_path(argument: str, at: datetime) -> Path:
    """The path to save to: a folder gets the default name, a name without suffix gets ``.json``."""
    default = f"conversation_{at:%Y%m%d_%H%M%S}.json"
    if not argument:
        return Path(default)
    path = Path(argument).expanduser()
    if argument.endswith(("/", os.sep)) or path.is_dir():
        return path / default
    return path if path.suffix == ".json" else path.with_name(path.name + ".json")


def load_path(argument: str) -> Path:
    """Return the file to load: the one that was named, or the newest file with a default name in this folder."""
    if argument:
        path = Path(argument).expanduser()
        return path if path.exists() or path.suffix == ".json" else path.with_name(path.name + ".json")
    saved = sorted(Path.cwd().glob("conversation_*.json"))
    if not saved:
        raise SavedConversationError(
            "There is no conversation_*.json in this folder.", hint="Say /load PATH."
        )
    return saved[-1]


def saved_files() -> list[tuple[Path, datetime]]:
    """Return the files with a default name in this folder and their times, the newest first: at most ``MAX_OFFERED``
    of them."""
    found = []
    for path in sorted(Path.cwd().glob("conversation_*.json"), reverse=True)[:MAX_OFFERED]:
        with suppress(OSError):  # removed meanwhile
            found.append((path, datetime.fromtimestamp(path.stat().st_mtime, UTC)))
    return found


def save(messages: Sequence[Message], path: Path) -> None:
    """Write the messages to a new file that only its owner can read.

    Raises:
        SavedConversationError: the file exists already or cannot be written; nothing half-written is left.
    """
    text = json.dumps(encode(messages), ensure_ascii=False, indent=2) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            _write(file, path, text)
    except FileExistsError:
        raise SavedConversationError(
            f"{path} exists already.", hint="Name another file; nothing was changed."
        ) from None
    except (OSError, ValueError) as error:
        raise SavedConversationError(f"Cannot write {path}: {error}.") from error


def _write(file: TextIO, path: Path, text: str) -> None:
    try:
        file.write(text)
        file.flush()
    except OSError:
        path.unlink(missing_ok=True)
        raise


def load(path: Path) -> tuple[Message, ...]:
    """The messages of a saved conversation, with new ids.

    Raises:
        SavedConversationError: the file cannot be read, is too large, or is no saved conversation.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SavedConversationError(f"{path} is larger than {MAX_FILE_BYTES // 1024 // 1024} MB.")
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SavedConversationError(f"Cannot read {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise SavedConversationError(f"{path} is not a saved conversation: {error}.") from error
    try:
        return tuple(decode(document))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise SavedConversationError(
            f"{path} is not a saved conversation.",
            hint="Expected {messages: [{role, content: [{text} | {toolUse} | {toolResult}]}]}.",
        ) from error


def encode(messages: Sequence[Message]) -> dict[str, Any]:
    """The document for some messages. Results of tools that follow one another share a message, as there."""
    saved: list[dict[str, Any]] = []
    for message in messages:
        role, content = _encode_one(message)
        follows = message.role == "tool" and saved and "toolResult" in saved[-1]["content"][0]
        if follows:
            saved[-1]["content"].extend(content)
        else:
            saved.append({"role": role, "content": content})
    names = sorted({call.name for message in messages for call in message.tool_calls})
    return {"messages": saved, "tools": [{"name": name, "description": ""} for name in names]}


def _encode_one(message: Message) -> tuple[str, list[dict[str, Any]]]:
    if message.role == "tool":
        result = {
            "toolUseId": message.tool_call_id or "",
            "content": [{"text": message.content}],
            "status": "error" if message.error else "success",
        }
        return "user", [{"toolResult": result}]
    uses = [
        {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments}}
        for call in message.tool_calls
    ]
    return message.role, [*([{"text": message.content}] if message.content or not uses else []), *uses]


def decode(document: dict[str, Any]) -> Iterable[Message]:
    """The messages of a document, in order."""
    for entry in document["messages"]:
        role, content = entry["role"], entry["content"]
        if role not in ("system", "user", "assistant"):
            raise ValueError(f"unknown role {role!r}")
        parts: list[dict[str, Any]] = [{"text": content}] if isinstance(content, str) else content
        yield from (_result(part["toolResult"]) for part in parts if "toolResult" in part)
        text = "".join(_text(part["text"]) for part in parts if "text" in part)
        calls = tuple(_call(part["toolUse"]) for part in parts if "toolUse" in part)
        if text or calls or not parts:
            yield Message(id=new_id("msg"), role=role, content=text, tool_calls=calls)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text is not a string")
    return value


def _call(use: dict[str, Any]) -> ToolCall:
    if not isinstance(use.get("input", {}), dict):
        raise TypeError("the input of a tool is not an object")
    return ToolCall(id=_text(use["toolUseId"]), name=_text(use["name"]), arguments=use.get("input", {}))


def _result(result: dict[str, Any]) -> Message:
    content = result.get("content", [])
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    return Message(
        id=new_id("msg"),
        role="tool",
        content=text,
        tool_call_id=_text(result["toolUseId"]),
        error=result.get("status") == "error",
    )
