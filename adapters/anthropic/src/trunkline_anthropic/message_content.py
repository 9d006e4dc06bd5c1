"""Translates the messages of a transcript to Anthropic's messages and content blocks. No I/O."""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from trunkline import Image, Message, ToolCall
from trunkline.api.model import DocumentFile, ReasoningBlock, model_error

Block = dict[str, Any]

VENDOR = "anthropic"
MAX_NAME_CHARS = 64
ID = re.compile(r"[a-zA-Z0-9_-]{1,128}")

AFTER_TEXT, AFTER_CALLS = "after_text", "after_calls"
"""The keys of a block of thinking that does not precede the whole answer: how many characters of text and how many
calls it follows. They are not part of the vendor's block and are not sent.
"""

OPENING = "(The conversation begins with the assistant.)"
"""The user's message that precedes an assistant message at the beginning. The vendor requires one."""

FAILED = "The tool failed without a message."
"""The content of a failed result without text. The vendor refuses an empty one."""


def tool_name(name: str) -> str:
    """Return a tool's name as the vendor takes it."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:MAX_NAME_CHARS] or "unnamed"


def call_id(id: str) -> str:
    """Return a call's id as the vendor takes it. Ids of other vendors may have other characters."""
    return id if ID.fullmatch(id) else f"call_{hashlib.sha256(id.encode()).hexdigest()[:24]}"


def split_system(messages: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
    """Return the system messages that precede the conversation, and the rest."""
    count = next((n for n, message in enumerate(messages) if message.role != "system"), len(messages))
    return messages[:count], messages[count:]


def text_blocks(text: str) -> list[Block]:
    """Return a text block; none for a text without visible characters, which the vendor refuses."""
    return [{"type": "text", "text": text}] if text.strip() else []


def conversation(messages: Iterable[Message], model: str, *, thinking: bool) -> list[dict[str, Any]]:
    """Return the messages in alternating roles. The first one is the user's.

    The results of all calls of an answer and what the user says after them are one message. Blocks of thinking are
    included if the model that wrote them is to read them and thinking is on.
    """
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = list(_blocks(message, model if thinking else None))
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    if not turns or turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "content": text_blocks(OPENING)})
    return turns


def own_reasoning(message: Message, model: str) -> list[ReasoningBlock]:
    """Return the blocks of thinking that this model wrote."""
    return [block for block in message.reasoning if block.vendor == VENDOR and block.model == model]


def _blocks(message: Message, model: str | None) -> Iterator[Block]:
    match message.role:
        case "assistant":
            yield from _answer(message, own_reasoning(message, model) if model is not None else [])
        case "tool":
            yield _result(message)
        case "system":
            yield from text_blocks(f"<system>\n{message.content}\n</system>" if message.content else "")
        case _:
            yield from map(_document, message.documents)
            yield from map(_image, message.images)
            yield from text_blocks(message.content)


def _answer(message: Message, reasoning: Sequence[ReasoningBlock]) -> Iterator[Block]:
    """Yield the blocks of an answer: text and calls, and each block of thinking where it was."""
    text, calls = message.content, message.tool_calls
    if not calls and not text.strip():
        return
    said = made = 0
    for block in reasoning:
        data = dict(block.data)
        at, after = data.pop(AFTER_TEXT, 0), data.pop(AFTER_CALLS, 0)
        yield from text_blocks(text[said:at])
        said = max(said, at)
        yield from map(_call, calls[made:after])
        made = max(made, after)
        yield data
    yield from text_blocks(text[said:])
    yield from map(_call, calls[made:])


def _call(call: ToolCall) -> Block:
    return {
        "type": "tool_use",
        "id": call_id(call.id),
        "name": tool_name(call.name),
        "input": call.arguments,
    }


def _result(message: Message) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": call_id(message.tool_call_id or "")}
    if content := message.content or (FAILED if message.error else ""):
        block["content"] = content
    if message.error:
        block["is_error"] = True
    return block


def _image(image: Image) -> Block:
    return {"type": "image", "source": _source(image.media_type, image.data)}


def _document(document: DocumentFile) -> Block:
    block: Block = {"type": "document"}
    if document.name:
        block["title"] = document.name
    if document.media_type == "application/pdf":
        block["source"] = _source(document.media_type, document.data)
    elif document.media_type.startswith("text/"):
        text = document.data.decode(errors="replace")
        block["source"] = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        raise model_error(
            "refused",
            f"{document.name or 'a document'} is {document.media_type}; Anthropic reads PDF and text",
        )
    return block


def _source(media_type: str, data: bytes) -> Block:
    return {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
