"""Conversations as files: one JSON line a message, below ``blocks/<block>/conversations/``. Formats and planning only.

They lie in folders by the last letter of their id, which is random: git writes a folder's list anew for each file that
changes in it, and one folder for all made every turn dearer with every conversation.
The first line is the header. Appending passes over messages whose id is there already, so repeats change nothing.
Conversations in use are kept in memory, keyed by the content they were read from, so nothing is parsed twice.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock

import msgspec

from trunkline import Message
from trunkline.api.bus import Scope
from trunkline.api.gateway import ConversationSummary
from trunkline.api.memory import AppendConversation, ConversationSlice, utc_now
from trunkline.api.nlp import make_title
from trunkline.api.store import (
    ForkedFrom,
    SummaryRecord,
    changed_records,
    conversation_paths,
    parse_conversation_path,
)
from trunkline_git_store.operations import ChangePlan, Entries, FileAppend, WriteOperation
from trunkline_git_store.repository import BlobEntry
from trunkline_git_store.view import View

_log = logging.getLogger(__name__)

CACHE_BYTES = 8 * 1024 * 1024
CONVERSATION_OVERHEAD, MESSAGE_OVERHEAD = 2_000, 1_000
"""Bytes that a conversation and a message take in memory besides their text, about: many are a few words long."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a conversation's file. ``forked_from`` stands only in that of a fork, ``one_shot`` only in one
    that a client began and never went on with, ``model`` only in one with a model of its own, ``summary_records`` only
    in one that was compacted, ``pinned`` and ``archived`` only where they are true."""

    id: str
    block: str
    title: str | None
    created_at: datetime
    forked_from: ForkedFrom | msgspec.UnsetType = msgspec.UNSET
    one_shot: bool | msgspec.UnsetType = msgspec.UNSET
    model: str | msgspec.UnsetType = msgspec.UNSET
    summary_records: tuple[SummaryRecord, ...] | msgspec.UnsetType = msgspec.UNSET
    pinned: bool | msgspec.UnsetType = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET


_header = msgspec.json.Decoder(Header)
_message = msgspec.json.Decoder(Message)


class ConversationFile:
    """A conversation as its file says it. ``lines`` has the line of each message, counted from 1."""

    __slots__ = ("header", "height", "ids", "lines", "messages", "text")

    def __init__(self, header: Header, messages: list[Message], lines: list[int], text: bytes) -> None:
        self.header = header
        self.messages = messages
        self.lines = lines
        self.text = text
        self.height = text.count(b"\n") + (not text.endswith(b"\n"))
        self.ids = {message.id for message in messages}

    @classmethod
    def created(cls, header: Header, messages: list[Message], text: bytes) -> "ConversationFile":
        """Return the record of a file that was just created."""
        return cls(header, messages, list(range(2, 2 + len(messages))), text)

    @property
    def memory_size(self) -> int:
        """About how many bytes it takes in memory: the text as the file has it and as the messages do."""
        return CONVERSATION_OVERHEAD + MESSAGE_OVERHEAD * len(self.messages) + 2 * len(self.text)

    @property
    def summary(self) -> ConversationSummary:
        """The line of the conversation list."""
        last = max((self.header.created_at, *(message.created_at for message in self.messages[-1:])))
        return ConversationSummary(
            id=self.header.id,
            block=self.header.block,
            title=self.header.title or title_of(self.messages),
            created_at=self.header.created_at,
            updated_at=last,
            message_count=len(self.messages),
            forked_from=self.header.forked_from or None,
            one_shot=bool(self.header.one_shot),
            pinned=bool(self.header.pinned),
            archived=bool(self.header.archived),
        )

    def slice(self, after: int) -> ConversationSlice:
        """The messages from number ``after`` on."""
        held = tuple(self.messages)
        return ConversationSlice(
            exists=True,
            count=len(held),
            messages=held[max(0, after) :],
            summary=self.summary,
            model=self.header.model or None,
            summary_record=next(reversed(self.header.summary_records or ()), None),
        )

    def extend(self, added: list[Message], tail: bytes) -> None:
        """Take in messages that were written at the end."""
        first = self.height + 1
        self.height += len(added)
        self.lines.extend(range(first, first + len(added)))
        self.messages.extend(added)
        self.ids.update(message.id for message in added)
        self.text += tail


def parse(path: str, text: bytes) -> ConversationFile:
    """Read a conversation's file. Unreadable lines are skipped and logged."""
    names = parse_conversation_path(path) or ("", "")
    header: Header | None = None
    messages: list[Message] = []
    lines: list[int] = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            if number == 1:
                header = _header.decode(line)
            else:
                messages.append(_message.decode(line))
                lines.append(number)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            _log.warning("%s line %d cannot be read and is skipped: %s", path, number, error)
    if header is None:
        began = messages[0].created_at if messages else datetime.fromtimestamp(0, UTC)
        header = Header(id=names[1], block=names[0], title=None, created_at=began)
    return ConversationFile(header, messages, lines, text)


def title_of(messages: Iterable[Message]) -> str | None:
    """A title from the first thing a person said; None while nobody said anything."""
    said = (make_title(message.content) for message in messages if message.role == "user")
    return next(filter(None, said), None)


class ConversationCache:
    """Parsed conversations by the blob they were read from, up to ``limit`` bytes of memory; the least used go first.
    Safe between threads."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit = limit
        self._cached_files: OrderedDict[str, ConversationFile] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, blob: str) -> ConversationFile | None:
        """The conversation of a blob."""
        with self._lock:
            found = self._cached_files.get(blob)
            if found is not None:
                self._cached_files.move_to_end(blob)
            return found

    def put(self, blob: str, conversation: ConversationFile) -> None:
        """Keep a conversation."""
        with self._lock:
            self._drop(blob)
            self._keep(blob, conversation)

    def extend(self, old: str, new: str, added: list[Message], tail: bytes) -> None:
        """The conversation of blob ``old`` got longer and is now blob ``new``."""
        with self._lock:
            conversation = self._drop(old)
            if conversation is None:
                return
            conversation.extend(added, tail)
            self._keep(new, conversation)

    def _keep(self, blob: str, conversation: ConversationFile) -> None:
        self._cached_files[blob] = conversation
        self._bytes += conversation.memory_size
        while self._bytes > self._limit and len(self._cached_files) > 1:
            self._drop(next(iter(self._cached_files)))

    def _drop(self, blob: str) -> ConversationFile | None:
        found = self._cached_files.pop(blob, None)
        if found is not None:
            self._bytes -= found.memory_size
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendMessages(WriteOperation):
    """Append messages to a conversation, which begins if it does not exist."""

    append: AppendConversation
    cache: ConversationCache

    @classmethod
    def from_request(cls, append: AppendConversation, cache: ConversationCache) -> "AppendMessages":
        """Return the write operation of a request. Raises Refusal ``invalid_path``."""
        conversation_paths(append.block, append.conversation)
        scope = Scope(block=append.block, conversation=append.conversation, turn=append.turn)
        return cls(actor=append.actor, scope=scope, append=append, cache=cache)

    @property
    def affected_paths(self) -> tuple[str, ...]:
        """The file, wherever it lies."""
        return conversation_paths(self.append.block, self.append.conversation)

    def plan(self, view: View) -> ChangePlan:
        """The file with the new messages at its end; nothing when all of them are there."""
        for path in self.affected_paths:
            entry = view.entry(path)
            if entry is not None:
                return self._append(path, entry, view)
        return self._begin(self.affected_paths[0])

    def _append(self, path: str, entry: BlobEntry, view: View) -> ChangePlan:
        known = self.cache.get(str(entry.blob)) or parse(path, view.blob(entry))
        added = _new_messages(self.append.messages, known.ids)
        header = self._header(known.header, added)
        if header != known.header:
            return self._rewrite(path, header, known, added)
        if not added:
            return ChangePlan({}, count=len(known.messages))
        return self._extend(path, entry, known, added)

    def _begin(self, path: str) -> ChangePlan:
        added = _new_messages(self.append.messages, set())
        header = Header(
            id=self.append.conversation,
            block=self.append.block,
            title=self.append.title or title_of(added),
            created_at=added[0].created_at if added else utc_now(),
            forked_from=self.append.forked_from or msgspec.UNSET,
            one_shot=self.append.one_shot or msgspec.UNSET,
            model=self.append.model or msgspec.UNSET,
            summary_records=changed_records((), self.append.summary_record, None) or msgspec.UNSET,
            pinned=self.append.pinned or msgspec.UNSET,
            archived=self.append.archived or msgspec.UNSET,
        )
        text = _line(header) + b"".join(map(_line, added))

        def keep(entries: Entries) -> None:
            new = entries.get(path)
            if new is not None:
                self.cache.put(str(new.blob), ConversationFile.created(header, added, text))

        return self._plan(path, text, added, len(added), keep)

    def _header(self, known: Header, added: list[Message]) -> Header:
        """With what the owner gives; whoever adds something has gone on with the conversation. A fork may have been
        named before its first turn was stored, so its origin can come later than its file."""
        one_shot = msgspec.UNSET if added and not self.append.one_shot else known.one_shot
        archived = (
            (False if added else known.archived) if self.append.archived is None else self.append.archived
        )
        pinned = known.pinned if self.append.pinned is None else self.append.pinned
        title = known.title if self.append.title is None else self.append.title or None
        model = known.model if self.append.model is None else self.append.model or msgspec.UNSET
        records = changed_records(
            known.summary_records or (), self.append.summary_record, self.append.withdrawn_record
        )
        return msgspec.structs.replace(
            known,
            title=title,
            one_shot=one_shot,
            model=model,
            summary_records=records or msgspec.UNSET,
            forked_from=known.forked_from or self.append.forked_from or msgspec.UNSET,
            pinned=pinned or msgspec.UNSET,
            archived=archived or msgspec.UNSET,
        )

    def _rewrite(
        self, path: str, header: Header, known: ConversationFile, added: list[Message]
    ) -> ChangePlan:
        messages = [*known.messages, *added]
        text = _line(header) + b"".join(map(_line, messages))
        return self._plan(path, text, added, len(messages), lambda entries: None)

    def _extend(
        self, path: str, entry: BlobEntry, known: ConversationFile, added: list[Message]
    ) -> ChangePlan:
        tail = b"".join(map(_line, added))
        if not known.text.endswith(b"\n"):
            tail = b"\n" + tail

        def keep(entries: Entries) -> None:
            new = entries.get(path)
            if new is not None:
                self.cache.put(str(entry.blob), known)
                self.cache.extend(str(entry.blob), str(new.blob), added, tail)

        plan = self._plan(path, known.text + tail, added, len(known.messages) + len(added), keep)
        plan.growth[path] = FileAppend(entry, len(known.text), tail)
        return plan

    def _plan(
        self, path: str, text: bytes, added: list[Message], count: int, done: Callable[[Entries], None]
    ) -> ChangePlan:
        reason = f"Conversation {self.append.conversation}: {self._describe(added)}"
        return ChangePlan({path: text}, reason, count=count, done=done)

    def _describe(self, added: list[Message]) -> str:
        append = self.append
        changes = {
            "title": append.title,
            "model": append.model,
            "summary": append.summary_record,
            "summary withdrawn": append.withdrawn_record,
            "pinned" if append.pinned else "unpinned": append.pinned,
            "archived" if append.archived else "taken out of the archive": append.archived,
        }
        what = next((name for name, value in changes.items() if value is not None), None)
        if added or what is None:
            return f"{len(added)} {'message' if len(added) == 1 else 'messages'}"
        return what


def _new_messages(messages: Iterable[Message], ids: set[str]) -> list[Message]:
    seen: set[str] = set()
    fresh: list[Message] = []
    for message in messages:
        if message.id not in ids and message.id not in seen:
            seen.add(message.id)
            fresh.append(message)
    return fresh


def _line(value: Header | Message) -> bytes:
    return msgspec.json.encode(value) + b"\n"
