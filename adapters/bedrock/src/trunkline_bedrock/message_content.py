"""Translates the messages of a transcript to Converse's messages and content blocks. No I/O."""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from trunkline import Image, Message, ToolCall
from trunkline.api.model import DocumentFile, ReasoningBlock, model_error
from trunkline_bedrock.bedrock_models import ModelFeatures, base_model

Block = dict[str, Any]

VENDOR = "aws.bedrock"
MAX_NAME_CHARS = 64
ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")

AFTER_TEXT, AFTER_CALLS = "after_text", "after_calls"
"""The keys of a block of reasoning that does not precede the whole answer: how many characters of text and how many
calls it follows. They are not part of the vendor's block and are not sent.
"""

OPENING = "(The conversation begins with the assistant.)"
"""The user's message that precedes an assistant message at the beginning. The vendor requires one."""

RECEIVED = "(The results were received.)"
"""The assistant message between results and a text, for models that refuse both in one message."""

EMPTY_RESULT = "(no output)"
FAILED = "The tool failed without a message."
ATTACHED = "(See the attached documents.)"
"""The text of a message with documents only. The vendor requires a text beside documents."""

MAX_DOCUMENT_NAME = 200

DOCUMENT_FORMATS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/markdown": "md",
}


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
    return [{"text": text}] if text.strip() else []


def own_reasoning(message: Message, model: str) -> list[ReasoningBlock]:
    """Return the blocks of reasoning that this model wrote, in whichever region."""
    return [
        block
        for block in message.reasoning
        if block.vendor == VENDOR and base_model(block.model) == base_model(model)
    ]


class ConversationBuilder:
    """Builds the messages of one request, in alternating roles. The first one is the user's.

    The results of all calls of an answer and what the user says after them are one message, unless the model refuses
    that. With ``thinking`` the blocks of reasoning that the model wrote are included.
    """

    def __init__(self, model: str, features: ModelFeatures, *, thinking: bool) -> None:
        self._model = model
        self._features = features
        self._thinking = thinking
        self._document_names: set[str] = set()

    def build(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Return the messages. There is always one."""
        turns: list[dict[str, Any]] = []
        for message in messages:
            role = "assistant" if message.role == "assistant" else "user"
            if blocks := list(self._blocks(message)):
                self._add(turns, role, blocks)
        if not turns or turns[0]["role"] != "user":
            turns.insert(0, {"role": "user", "content": text_blocks(OPENING)})
        return turns

    def _add(self, turns: list[dict[str, Any]], role: str, blocks: list[Block]) -> None:
        last = turns[-1] if turns else None
        if last is None or last["role"] != role:
            turns.append({"role": role, "content": blocks})
        elif self._features.mixes or _has_result(last["content"][-1]) == _has_result(blocks[0]):
            last["content"] += blocks
        else:
            turns.append({"role": "assistant", "content": text_blocks(RECEIVED)})
            turns.append({"role": role, "content": blocks})

    def _blocks(self, message: Message) -> Iterator[Block]:
        match message.role:
            case "assistant":
                yield from self._answer(message)
            case "tool":
                yield self._result(message)
            case "system":
                yield from text_blocks(f"<system>\n{message.content}\n</system>" if message.content else "")
            case _:
                yield from map(self._document, message.documents)
                yield from map(_image, message.images)
                yield from text_blocks(message.content or (ATTACHED if message.documents else ""))

    def _answer(self, message: Message) -> Iterator[Block]:
        """Yield the blocks of an answer: text and calls, and each block of reasoning where it was."""
        calls = message.tool_calls
        text = message.content if self._features.mixes or not calls else ""
        if not calls and not text.strip():
            return  # the vendor refuses an answer of reasoning only
        said = made = 0
        for block in own_reasoning(message, self._model) if self._thinking else ():
            data = dict(block.data)
            at, after = data.pop(AFTER_TEXT, 0), data.pop(AFTER_CALLS, 0)
            yield from text_blocks(text[said:at])
            said = max(said, at)
            yield from map(_call, calls[made:after])
            made = max(made, after)
            yield {"reasoningContent": _reasoning(data)}
        yield from text_blocks(text[said:])
        yield from map(_call, calls[made:])

    def _result(self, message: Message) -> Block:
        text = message.content if message.content.strip() else (FAILED if message.error else EMPTY_RESULT)
        if message.error and not self._features.status:
            text = f"Error: {text}"
        result: Block = {"toolUseId": call_id(message.tool_call_id or ""), "content": [{"text": text}]}
        if message.error and self._features.status:
            result["status"] = "error"
        return {"toolResult": result}

    def _document(self, document: DocumentFile) -> Block:
        name = document_name(document.name, self._document_names)
        self._document_names.add(name)
        kind = document.media_type.partition(";")[0].strip()
        form = DOCUMENT_FORMATS.get(kind) or ("txt" if kind.startswith("text/") else "")
        if not form:
            raise model_error(
                "refused",
                f"{document.name or 'a document'} is {document.media_type}; "
                "Bedrock reads PDF, text, HTML, CSV, Word and Excel files",
            )
        return {"document": {"format": form, "name": name, "source": {"bytes": document.data}}}


def document_name(name: str, taken: set[str]) -> str:
    """Return a document's name as the vendor takes it: letters, digits, single spaces, hyphens, brackets and
    parentheses, and unlike the others of the request.
    """
    plain = re.sub(r"[^a-zA-Z0-9\s()\[\]-]", " ", name)
    plain = " ".join(plain.split())[: MAX_DOCUMENT_NAME - 8].strip() or "document"
    made, number = plain, 1
    while made in taken:
        number += 1
        made = f"{plain} {number}"
    return made


def _has_result(block: Block) -> bool:
    return "toolResult" in block


def _reasoning(data: dict[str, Any]) -> Block:
    """Return the vendor's block. Its bytes are kept as base64."""
    if "redactedContent" not in data:
        return data
    try:
        return {"redactedContent": base64.b64decode(data["redactedContent"], validate=True)}
    except (binascii.Error, TypeError, ValueError):
        raise model_error("refused", "a stored block of reasoning is damaged") from None


def _call(call: ToolCall) -> Block:
    return {"toolUse": {"toolUseId": call_id(call.id), "name": tool_name(call.name), "input": call.arguments}}


def _image(image: Image) -> Block:
    return {
        "image": {"format": image.media_type.removeprefix("image/"), "source": {"bytes": image.data}},
    }
