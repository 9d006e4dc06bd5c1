"""Reasoning that a vendor wants back, as blocks of an answer and as parts of the next request. No I/O in here."""

from collections.abc import Iterator
from typing import Any

from trunkline import Message
from trunkline.api.model import ReasoningBlock
from trunkline_openai.vendors import Vendor

PHASE = "phase"
ITEM, TEXT_BEFORE, CALLS_BEFORE = "item", "text_before", "calls_before"
"""The keys of a block of Responses: the item, and its place among the answer's text and calls."""

DETAIL_TEXTS = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""The types of reasoning details that arrive in pieces, each with the field of its text."""


def item_block(item: dict[str, Any], vendor: str, model: str, *, text: bool, calls: int) -> ReasoningBlock:
    """Return the block of a reasoning item. ``text`` and ``calls`` are what preceded it in the answer."""
    sent = {key: value for key, value in item.items() if key != "status" and value is not None}
    return ReasoningBlock(
        vendor=vendor, model=model, data={ITEM: sent, TEXT_BEFORE: text, CALLS_BEFORE: calls}
    )


def phase_block(phase: str, vendor: str, model: str) -> ReasoningBlock:
    """Return the block of a message's phase, commentary or final answer, which newer models want back."""
    return ReasoningBlock(vendor=vendor, model=model, data={PHASE: phase})


class ReasoningItems:
    """The reasoning items of an assistant message, to be sent in their places. An item of another model is left out,
    because only its own model can decrypt it.
    """

    def __init__(self, message: Message, vendor: str, model: str) -> None:
        own = [block.data for block in message.reasoning if (block.vendor, block.model) == (vendor, model)]
        self._blocks = [data for data in own if isinstance(data.get(ITEM), dict)]
        self._phases = [data[PHASE] for data in own if PHASE in data]
        self._text = bool(message.content)

    @property
    def phase(self) -> dict[str, Any]:
        """The field of the message's phase, if the vendor gave one."""
        return {PHASE: self._phases[-1]} if self._phases else {}

    def before_text(self) -> Iterator[dict[str, Any]]:
        """Yield the items before the text."""
        if self._text:
            yield from (block[ITEM] for block in self._blocks if not block.get(TEXT_BEFORE))

    def before_call(self, number: int) -> Iterator[dict[str, Any]]:
        """Yield the items after the text that directly precede a call. Items behind the last call are not sent: the
        vendor refuses an item that nothing follows.
        """
        for block in self._blocks:
            sent = self._text and not block.get(TEXT_BEFORE)
            if not sent and block.get(CALLS_BEFORE, 0) == number:
                yield block[ITEM]


def chat_block(
    reasoning: str, details: list[dict[str, Any]], vendor: Vendor, name: str, model: str
) -> ReasoningBlock | None:
    """Return the block of an answer of Chat Completions, None if the vendor wants nothing back."""
    data: dict[str, Any] = {}
    if vendor.replays == "reasoning_content" and reasoning:
        data = {vendor.replays: reasoning}
    elif vendor.replays == "reasoning_details" and details:
        data = {vendor.replays: details}
    return ReasoningBlock(vendor=name, model=model, data=data) if data else None


def chat_reasoning(
    message: Message, vendor: Vendor, name: str, model: str, *, thinks: bool
) -> dict[str, Any]:
    """Return the fields with which an assistant message gives its reasoning back.

    DeepSeek and Moonshot refuse a message with calls and without ``reasoning_content`` while the model thinks, also if
    another model wrote it; the field may be empty. Details are of the model that wrote them.
    """
    own = [block for block in message.reasoning if block.vendor == name and vendor.replays in block.data]
    if vendor.replays == "reasoning_content" and message.tool_calls and thinks:
        return {vendor.replays: "".join(str(block.data[vendor.replays]) for block in own)}
    details = [block.data[vendor.replays] for block in own if block.model == model]
    if vendor.replays == "reasoning_details" and details:
        return {vendor.replays: [one for given in details for one in given]}
    return {}


class DetailCollector:
    """Puts reasoning details together from their pieces: consecutive pieces of one type and index are one detail."""

    def __init__(self) -> None:
        self.details: list[dict[str, Any]] = []

    def add(self, pieces: list[dict[str, Any]]) -> None:
        """Take the details of one event."""
        for piece in pieces:
            text = DETAIL_TEXTS.get(str(piece.get("type")))
            last = self.details[-1] if self.details else None
            if text is not None and last is not None and _continues(last, piece):
                given = {key: value for key, value in piece.items() if value is not None and key != text}
                last.update(given, **{text: f"{last.get(text) or ''}{piece.get(text) or ''}"})
            else:
                self.details.append(dict(piece))


def _continues(last: dict[str, Any], piece: dict[str, Any]) -> bool:
    return last.get("type") == piece.get("type") and last.get("index") == piece.get("index")
