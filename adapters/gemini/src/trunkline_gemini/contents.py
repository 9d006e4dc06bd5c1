"""Translates the messages of a transcript to Gemini's contents and parts, with the signatures of thoughts. No I/O.

Gemini signs parts of an answer: function calls, pieces of text and thoughts. A block of reasoning (``ReasoningBlock``)
holds one signature and says to which part it belongs:

* ``{"part": "functionCall", "id": ID, "thoughtSignature": ...}``: the call with this id
* ``{"part": "text", "start": N, "end": N, "thoughtSignature": ...}``: the characters of the answer's text from
  ``start`` to ``end``, which may be none
* ``{"part": "thought", "text": ..., "at": N, "thoughtSignature": ...}``: a thought after ``at`` characters of text
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trunkline import Image, Message, ToolCall
from trunkline.api.model import DocumentFile, ReasoningBlock, model_error
from trunkline_gemini.gemini_models import traits_of

Part = dict[str, Any]
Content = dict[str, Any]

VENDOR = "gcp.gemini"
MAX_NAME_CHARS = 64
"""The largest number of characters in a name. Newer models take 128."""


SIGNATURE = "thoughtSignature"
SKIP_SIGNATURE = "skip_thought_signature_validator"
"""The signature for a function call that another model made. The vendor documents it for such calls."""

OPENING = "(The conversation begins with the model.)"
"""The user's content that precedes a model's content at the beginning. The vendor requires one."""

FAILED = "The tool failed without a message."
"""The text of a failed result without text."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
TEXT_TYPES = ("application/json", "application/xml", "application/x-yaml", "application/yaml")
"""The types of documents that are text besides ``text/*``."""


def function_name(name: str) -> str:
    """Return a tool's name as the vendor takes it."""
    made = re.sub(r"[^a-zA-Z0-9_.:-]", "_", name)
    begin = "" if re.match(r"[a-zA-Z_]", made) else "_"
    return f"{begin}{made}"[:MAX_NAME_CHARS]


def split_system(messages: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
    """Return the system messages that precede the conversation, and the rest."""
    count = next((n for n, message in enumerate(messages) if message.role != "system"), len(messages))
    return messages[:count], messages[count:]


def text_parts(text: str) -> list[Part]:
    """Return a text part; none for a text without visible characters."""
    return [{"text": text}] if text.strip() else []


def conversation(messages: Iterable[Message], model: str) -> list[Content]:
    """Return the contents. The first one is the user's.

    The results of all calls of an answer are one content of their own. Other messages in a row from one role are one
    content. Signatures are included if the same model wrote them.
    """
    contents: list[Content] = []
    names: dict[str, str] = {}
    mergeable = ""
    for message in messages:
        names |= {call.id: call.name for call in message.tool_calls}
        parts = list(_parts(message, model, names))
        if not parts:
            continue
        if contents and mergeable == message.role:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": "model" if message.role == "assistant" else "user", "parts": parts})
        mergeable = message.role
    if not contents or contents[0]["role"] != "user":
        contents.insert(0, {"role": "user", "parts": text_parts(OPENING)})
    if traits_of(model).signed:
        _sign_foreign_calls(contents)
    return contents


def _parts(message: Message, model: str, names: Mapping[str, str]) -> Iterator[Part]:
    match message.role:
        case "assistant":
            own = [one for one in message.reasoning if one.vendor == VENDOR and one.model == model]
            yield from _answer(message, own)
        case "tool":
            yield _result(message, names)
        case "system":
            yield from text_parts(f"<system>\n{message.content}\n</system>" if message.content else "")
        case _:
            yield from map(_document, message.documents)
            yield from map(_image, message.images)
            yield from text_parts(message.content)


def _answer(message: Message, reasoning: Sequence[ReasoningBlock]) -> Iterator[Part]:
    """Yield the parts of an answer, its text before its calls, each with its own signature."""
    text = message.content
    if not message.tool_calls and not text.strip():
        return
    signatures: dict[str, str] = {}
    said = 0
    for data in (block.data for block in reasoning):
        signed = {SIGNATURE: data[SIGNATURE]}
        match data["part"]:
            case "functionCall":
                signatures[data["id"]] = data[SIGNATURE]
            case "text":
                start, end = max(said, data["start"]), max(said, data["end"])
                yield from text_parts(text[said:start])
                yield {"text": text[start:end], **signed}
                said = end
            case "thought":
                at = max(said, data["at"])
                yield from text_parts(text[said:at])
                yield {"text": data["text"], "thought": True, **signed}
                said = at
    yield from text_parts(text[said:])
    for call in message.tool_calls:
        yield _call(call, signatures.get(call.id))


def _call(call: ToolCall, signature: str | None) -> Part:
    part: Part = {"functionCall": {"id": call.id, "name": function_name(call.name), "args": call.arguments}}
    return part if signature is None else {**part, SIGNATURE: signature}


def _result(message: Message, names: Mapping[str, str]) -> Part:
    id = message.tool_call_id or ""
    response = {"error": message.content or FAILED} if message.error else {"output": message.content}
    name = names.get(id, message.name or "")
    return {"functionResponse": {"id": id, "name": function_name(name), "response": response}}


def _sign_foreign_calls(contents: Sequence[Content]) -> None:
    """Sign the calls of the running turn that have no signature, such as those that another vendor's model made.

    The API checks the first call of each answer after the last content that holds more than results.
    """
    for content in reversed(contents):
        if content["role"] == "user" and any("functionResponse" not in part for part in content["parts"]):
            return
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls and content["role"] == "model":
            calls[0].setdefault(SIGNATURE, SKIP_SIGNATURE)


def _image(image: Image) -> Part:
    if image.media_type not in IMAGE_TYPES:
        raise model_error("refused", f"an image is {image.media_type}; Gemini reads PNG, JPEG and WebP")
    return _inline(image.media_type, image.data)


def _document(document: DocumentFile) -> Part:
    kind = document.media_type.partition(";")[0].strip()
    if kind == "application/pdf":
        return _inline(kind, document.data)
    if kind.startswith("text/") or kind in TEXT_TYPES or kind.endswith(("+json", "+xml")):
        return _inline("text/plain", document.data)
    raise model_error("refused", f"{document.name or 'a document'} is {kind}; Gemini reads PDF and text")


def _inline(media_type: str, data: bytes) -> Part:
    return {"inlineData": {"mimeType": media_type, "data": base64.b64encode(data).decode()}}
