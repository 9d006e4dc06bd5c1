"""An export of a conversation: one file with everything that was said in it and in its branches, for people (Markdown)
or for programs (JSON). Pure: reads and writes nothing.

Files of messages are named and not contained: ``trunkline memory export`` has their bytes.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from trunkline._util.text import one_line
from trunkline.contracts.conversations.branch import shared_length
from trunkline.contracts.conversations.messages import Attachment, ConversationSummary, Message

SPEAKERS = {"user": "You", "assistant": "Agent", "system": "System"}


class ExportedBranch(msgspec.Struct, frozen=True, kw_only=True):
    """Another conversation of the family: it begins with the first ``shared`` messages of the exported one, then come
    ``messages``.
    """

    conversation: ConversationSummary
    shared: int
    messages: tuple[Message, ...]


class ConversationDocument(msgspec.Struct, frozen=True, kw_only=True):
    """All of a conversation. Messages are as its file in memory has them."""

    format: Literal["trunkline-conversation"] = "trunkline-conversation"
    version: Literal[1] = 1
    conversation: ConversationSummary
    messages: tuple[Message, ...]
    branches: tuple[ExportedBranch, ...] = ()


def build_document(
    summary: ConversationSummary,
    messages: tuple[Message, ...],
    others: Iterable[tuple[ConversationSummary, tuple[Message, ...]]],
) -> ConversationDocument:
    """Return the document of a conversation. ``others`` are the other conversations of its family."""
    branches = []
    for other, theirs in others:
        shared = shared_length(messages, theirs)
        branches.append(ExportedBranch(conversation=other, shared=shared, messages=theirs[shared:]))
    return ConversationDocument(conversation=summary, messages=messages, branches=tuple(branches))


def to_json(document: ConversationDocument) -> str:
    """Return the document as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def to_markdown(document: ConversationDocument) -> str:
    """Return the document as Markdown. Names and titles are one line each, and what tools received and returned is in
    fences that it cannot close; the text of messages is Markdown already.
    """
    summary = document.conversation
    parts = [f"# {_title(summary)}", *_facts(summary), *_messages(document.messages)]
    for branch in document.branches:
        parts += [
            f"# Branch: {_title(branch.conversation)}",
            f"`{branch.conversation.id}` goes on differently after message {branch.shared} of {summary.message_count}."
            if branch.shared
            else f"`{branch.conversation.id}` begins differently.",
            *_messages(branch.messages),
        ]
    return "\n\n".join(parts) + "\n"


def _title(summary: ConversationSummary) -> str:
    return one_line(summary.title or "") or summary.id


def _facts(summary: ConversationSummary) -> Iterator[str]:
    facts = [
        f"* conversation: `{summary.id}` of block `{summary.block}`",
        f"* from {_time(summary.created_at)} to {_time(summary.updated_at)}",
    ]
    if summary.forked_from is not None:
        origin = summary.forked_from
        facts.append(f"* forked from `{origin.conversation}`, turn `{origin.turn}`, step {origin.step}")
    yield "\n".join(facts)


def _messages(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if message.role == "tool":
            failed = ", failed" if message.error else ""
            yield f"### Result of {one_line(message.name or 'a tool')}{failed}"
            yield _fenced(message.content)
            yield from _file_list(message.files)
            continue
        name = one_line(message.name) if message.name else SPEAKERS[message.role]
        yield f"## {name}, {_time(message.created_at)}{' (cut off)' if message.partial else ''}"
        if message.content:
            yield message.content
        yield from _file_list(message.attachments)
        for call in message.tool_calls:
            yield f"### Call of {one_line(call.name)}"
            yield _fenced(msgspec.json.format(msgspec.json.encode(call.arguments), indent=2).decode(), "json")


def _file_list(files: Sequence[Attachment]) -> Iterator[str]:
    if files:
        yield "\n".join(
            f"* file: {one_line(file.name)} ({file.media_type}, {file.size} bytes), `{file.path}`"
            for file in files
        )


def _fenced(text: str, language: str = "") -> str:
    """Return the text in a fence that is longer than any run of backticks in it."""
    run = longest = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
