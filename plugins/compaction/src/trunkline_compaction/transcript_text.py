"""The text of messages for the model that summarises them, in pieces that it accepts. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from trunkline import Message

MAX_RESULT_CHARS = 4_000
"""Characters of a tool's result that are summarised: its beginning and its end. The whole result stays stored."""


_HEADING = re.compile(r"(?mi)^([^\S\n]*)\[(?=[^\S\n]*(?:user|assistant|system|calls|result|attached)\b)")
"""The beginning of a line that looks like the heading of a message."""


def transcript_text(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the text of each message: who said what, which tools were called, and what they returned.

    No text can forge a heading: a page that a tool read would otherwise say something in the person's name, and the
    summary would keep that as the person's words.
    """
    for message in messages:
        if message.role == "tool":
            failed = " (failed)" if message.error else ""
            yield f"[result of {message.name or 'a tool'}{failed}]\n{_plain(_shortened(message.content))}"
            continue
        calls = [
            f"[calls {call.name} with {json.dumps(call.arguments, ensure_ascii=False, default=str)}]"
            for call in message.tool_calls
        ]
        files = [f"[attached {' '.join(file.name.split())}]" for file in message.attachments]
        said = "\n".join(part for part in (_plain(message.content), *files, *calls) if part)
        if said:
            yield f"[{message.role}]\n{said}"


def take_piece(texts: Sequence[str], size: int) -> tuple[str, list[str]]:
    """Return as many of the texts as have ``size`` characters together, and the rest. A longer text is cut in two."""
    taken: list[str] = []
    room, rest = size, list(texts)
    while rest and len(rest[0]) <= room:
        room -= len(rest[0])
        taken.append(rest.pop(0))
    if rest and not taken:
        taken, rest[0] = [rest[0][:size]], rest[0][size:]
    return "\n\n".join(taken), rest


def _plain(text: str) -> str:
    return _HEADING.sub(r"\1(", text)


def _shortened(text: str) -> str:
    if len(text) <= MAX_RESULT_CHARS:
        return text
    half = MAX_RESULT_CHARS // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters are left out]\n{text[-half:]}"
