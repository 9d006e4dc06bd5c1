"""Conversations as files: a header, then one JSON line per message. Formats only."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from trunkline import Message
from trunkline.api.gateway import ConversationSummary
from trunkline.api.memory import AppendConversation, ConversationSlice, utc_now
from trunkline.api.nlp import make_title
from trunkline.api.store import ForkedFrom, SummaryRecord, changed_records


class Header(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first line of the file."""

    id: str
    block: str
    created_at: datetime
    title: str | None = None
    forked_from: ForkedFrom | None = None
    one_shot: bool = False
    model: str | None = None
    summary_records: tuple[SummaryRecord, ...] = ()
    pinned: bool = False
    archived: bool = False


class Conversation(msgspec.Struct, frozen=True):
    """The content of a conversation's file."""

    header: Header
    messages: tuple[Message, ...]

    @classmethod
    def parse(cls, data: bytes) -> "Conversation":
        """Parse the content of a file."""
        first, *lines = data.splitlines()
        messages = tuple(msgspec.json.decode(line, type=Message) for line in lines)
        return cls(msgspec.json.decode(first, type=Header), messages)

    @classmethod
    def begin(cls, append: AppendConversation) -> "Conversation":
        """Return a new conversation without messages, with the header for the first messages."""
        header = Header(
            id=append.conversation,
            block=append.block,
            created_at=append.messages[0].created_at if append.messages else utc_now(),
            title=append.title,
            forked_from=append.forked_from,
            one_shot=append.one_shot,
            model=append.model or None,
            summary_records=changed_records((), append.summary_record, None),
            pinned=bool(append.pinned),
            archived=bool(append.archived),
        )
        return cls(header, ())

    def fresh(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        """Return the messages whose ids are not stored yet, each once."""
        known = {message.id for message in self.messages}
        return tuple({one.id: one for one in messages if one.id not in known}.values())

    def titled(self, append: AppendConversation, added: Sequence[Message]) -> Header:
        """Return the header with what was given. Adding messages turns a one-shot conversation into a
        continued one, unless they are one-shot too, and takes a conversation out of the archive.
        """
        title = self.header.title if append.title is None else append.title or None
        one_shot = self.header.one_shot and (append.one_shot or not added)
        model = self.header.model if append.model is None else append.model or None
        records = changed_records(self.header.summary_records, append.summary_record, append.withdrawn_record)
        pinned = self.header.pinned if append.pinned is None else append.pinned
        archived = self.header.archived and not added if append.archived is None else append.archived
        return msgspec.structs.replace(
            self.header,
            title=title,
            one_shot=one_shot,
            model=model,
            summary_records=records,
            forked_from=self.header.forked_from or append.forked_from,
            pinned=pinned,
            archived=archived,
        )

    @property
    def summary(self) -> ConversationSummary:
        """The entry in the list of conversations."""
        said = (make_title(one.content) for one in self.messages if one.role == "user")
        return ConversationSummary(
            id=self.header.id,
            block=self.header.block,
            title=self.header.title or next(filter(None, said), None),
            created_at=self.header.created_at,
            updated_at=max([self.header.created_at, *(one.created_at for one in self.messages[-1:])]),
            message_count=len(self.messages),
            forked_from=self.header.forked_from,
            one_shot=self.header.one_shot,
            pinned=self.header.pinned,
            archived=self.header.archived,
        )

    def slice(self, after: int) -> ConversationSlice:
        """Return the messages from number ``after`` on."""
        return ConversationSlice(
            exists=True,
            count=len(self.messages),
            messages=self.messages[max(0, after) :],
            summary=self.summary,
            model=self.header.model,
            summary_record=next(reversed(self.header.summary_records), None),
        )

    @property
    def evidence(self) -> list[tuple[int, str]]:
        """The line number and text of each message that a search may find.

        Results that repeat memory are excluded, and so are the questions of their turns.
        """
        repeated = {message.turn for message in self.messages if message.derived}
        return [
            (line, text)
            for line, message in enumerate(self.messages, 2)
            if not message.derived
            and not (message.role == "user" and message.turn and message.turn in repeated)
            for text in (message.content or "").split("\n")
        ]


def lines(values: Iterable[Header | Message]) -> bytes:
    """Encode a header and messages as the lines of a file."""
    return b"".join(msgspec.json.encode(value) + b"\n" for value in values)
