"""What the records of a log mean: the files as they are, their history, what can be found. No disk, no waiting."""

import io
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

import pygit2

from trunkline.contracts.conversations.messages import (
    AppendConversation,
    ConversationPage,
    ConversationSlice,
    ConversationSummary,
    ListConversations,
)
from trunkline.contracts.memory.messages import MemoryChange, MemoryEntry, MemoryFile, MemoryHit, SearchMemory
from trunkline.contracts.memory.store import Change, MemoryRule
from trunkline.workers.memory.conversations import (
    AppendMessages,
    ConversationCache,
    ConversationFile,
    conversation_paths,
    parse,
    parse_conversation_path,
)
from trunkline.workers.memory.index.file_kinds import file_passages
from trunkline.workers.memory.index.passage import try_decode_text
from trunkline.workers.memory.log_history import LogHistory
from trunkline.workers.memory.log_record import MemoryRecord
from trunkline.workers.memory.operations import Content, WriteFiles, WriteOperation
from trunkline.workers.memory.paths import is_under, normalize_folder, normalize_path, parents, path_refusal
from trunkline.workers.memory.repository import BlobEntry
from trunkline.workers.memory.root_reader import not_found
from trunkline.workers.memory.rules import apply_rules
from trunkline.workers.memory.search.filenames import search_names
from trunkline.workers.memory.search.snippets import build_line_hit, count_matches
from trunkline.workers.memory.search.words import folded_words
from trunkline.workers.memory.view import View
from trunkline_bus import Refusal, new_id

T = TypeVar("T")


class LogFile(NamedTuple):
    """A file as it is."""

    entry: BlobEntry
    data: bytes
    time: datetime


class LogView(View):
    """A memory in main memory, made from its records. One that is not told everything (``take``) is out of date."""

    def __init__(self, records: Iterable[MemoryRecord]) -> None:
        self._files: dict[str, LogFile] = {}
        self._records: list[MemoryRecord] = []
        self._numbers: dict[str, int] = {}
        self._conversations = ConversationCache()
        for record in records:
            self.apply(record)

    @property
    def head(self) -> str:
        """The newest version; "" before the first."""
        return self._records[-1].version if self._records else ""

    def apply(self, record: MemoryRecord) -> None:
        """Let a record have its effect."""
        self._numbers[record.version] = len(self._records)
        self._records.append(record)
        for path, content in record.files.items():
            if content is None:
                self._files.pop(path, None)
            else:
                self._files[path] = LogFile(_entry(content), content, record.time)
        for path, tail in record.grown.items():
            data = self.data(path) + tail
            self._files[path] = LogFile(_entry(data), data, record.time)

    @property
    def log_history(self) -> LogHistory:
        """What was."""
        return LogHistory(self._records)

    # What a wish is planned against --------------------------------------------------------------------------

    def entry(self, path: str) -> BlobEntry | None:
        """The file at a path."""
        found = self._files.get(path)
        return found.entry if found else None

    def data(self, path: str) -> bytes:
        """The bytes of the file at a path. Raises Refusal ``not_found``."""
        if path not in self._files:
            raise not_found(path)
        return self._files[path].data

    def blob(self, entry: BlobEntry) -> bytes:
        """The bytes of an entry that is there."""
        return next(held.data for held in self._files.values() if held.entry == entry)

    def files_under(self, path: str) -> dict[str, BlobEntry]:
        """All files of a folder."""
        return {at: held.entry for at, held in self._files.items() if is_under(at, path) and at != path}

    # Wishes --------------------------------------------------------------------------------------------------

    def write_operation(self, change: Change, expected: Mapping[str, str | None]) -> WriteOperation:
        """The wish to write files."""
        files, known = _checked(change.files), _checked(expected)
        return WriteFiles(
            actor=change.actor, reason=change.reason, scope=change.scope, files=files, expected=known
        )

    def append_operation(self, append: AppendConversation) -> WriteOperation:
        """The wish to append to a conversation."""
        return AppendMessages.from_request(append, self._conversations)

    def plan_record(self, wish: WriteOperation, rules: Sequence[MemoryRule]) -> MemoryRecord | None:
        """What to keep so that the wish is fulfilled; None when it is already. Raises Refusal, a rule's included."""
        plan = wish.plan(self)
        whole = {path: self._bytes(content) for path, content in plan.files.items()}
        left = apply_rules(rules, wish, plan, whole, self).files
        files = {path: content for path, content in left.items() if content != self._current_bytes(path)}
        if not files:
            return None
        growing = left == whole and set(plan.growth) == set(files)
        return MemoryRecord(
            version=new_id().lower(),
            time=datetime.now(UTC),
            actor=wish.actor,
            reason=wish.reason or plan.reason,
            conversation=wish.scope.conversation,
            turn=wish.scope.turn,
            files={} if growing else files,
            grown={path: growth.tail for path, growth in plan.growth.items()} if growing else {},
        )

    def _bytes(self, content: Content) -> bytes | None:
        return self.blob(content) if isinstance(content, BlobEntry) else content

    def _current_bytes(self, path: str) -> bytes | None:
        return self._files[path].data if path in self._files else None

    # Files ---------------------------------------------------------------------------------------------------

    def read(self, path: str, version: str | None) -> MemoryFile:
        """A file's text, now or at a version."""
        plain = normalize_path(path)
        held = self._files.get(plain) if version is None else self._file_at(plain, version)
        if held is None:
            raise not_found(plain)
        try:
            text = held.data.decode()
        except UnicodeDecodeError:
            raise path_refusal(plain, "it is not a text file") from None
        return MemoryFile(path=plain, content=text, hash=str(held.entry.blob), modified_at=held.time)

    def _file_at(self, path: str, version: str) -> LogFile | None:
        if version not in self._numbers:
            raise Refusal("not_found", f"Memory has no version {version[:64]!r}.")
        data = self.log_history.states(path)[self._numbers[version] + 1]
        return (
            None if data is None else LogFile(_entry(data), data, self._records[self._numbers[version]].time)
        )

    def list(self, path: str, recursive: bool) -> tuple[MemoryEntry, ...]:
        """Names under a folder, sorted."""
        above = normalize_folder(path)
        if above in self._files:
            raise path_refusal(above, "it is a file, not a folder")
        found: dict[str, MemoryEntry] = {}
        for file in self.files_under(above):
            held = self._files[file]
            for name in (file, *parents(file)):
                if name != above and is_under(name, above):
                    found.setdefault(name, _listed(name, held, whole=name == file))
        if above and not found:
            raise Refusal("not_found", f"There is no folder {above!r} in memory.")
        depth = above.count("/") + bool(above)
        return tuple(found[name] for name in sorted(found) if recursive or name.count("/") == depth)

    def history(self, path: str, limit: int) -> tuple[MemoryChange, ...]:
        """The changes of a file or folder, newest first."""
        plain = normalize_folder(path)
        states = self.log_history.states(plain)
        found = [
            MemoryChange(
                version=record.version,
                message=record.reason,
                author=record.actor,
                timestamp=record.time,
                previous=None if (before := states[number]) is None else try_decode_text(before),
            )
            for number, record in enumerate(self._records)
            if any(is_under(changed, plain) for changed in (*record.files, *record.grown))
        ]
        if not found and limit > 0:
            raise Refusal("not_found", f"There was never anything at {plain!r} in memory.")
        return tuple(found[::-1][: max(0, limit)])

    def export(self, target: Path) -> int:
        """Write the archive; returns how many files of memory it holds. Raises OSError."""
        files = dict(self._files)
        with tarfile.open(target, "w") as tar:
            history = b"".join(record.encode() + b"\n" for record in list(self._records))
            _add(tar, "history.jsonl", history, datetime.now(UTC))
            for path, held in sorted(files.items()):
                _add(tar, f"memory/{path}", held.data, held.time)
        return len(files)

    # Finding -------------------------------------------------------------------------------------------------

    def search(self, query: SearchMemory) -> tuple[MemoryHit, ...]:
        """The best line of each file that holds words of the query (or the query as it stands), best first."""
        above, files = normalize_folder(query.path), dict(self._files)
        inside = {path: held for path, held in files.items() if is_under(path, above)}
        if query.kind == "filename":
            return search_names(sorted(inside), query)[: max(0, query.limit)]
        words = folded_words(query.query) or [query.query.strip().casefold()]
        hits = [
            hit
            for path, held in inside.items()
            for hit in _best(path, held.data, words, evidence=not query.kinds)
            if words[0]
        ]
        hits.sort(key=lambda hit: (-hit.score, hit.path))
        return tuple(hits[: max(0, query.limit)])

    # Conversations -------------------------------------------------------------------------------------------

    def load_conversation(self, block: str, conversation: str, after: int) -> ConversationSlice:
        """A conversation's messages from number ``after`` on."""
        for path in conversation_paths(block, conversation):
            if path in self._files:
                return self._conversation(path).slice(after)
        return ConversationSlice(exists=False)

    def list_conversations(self, query: ListConversations) -> ConversationPage:
        """A page of those that match, newest first."""
        words = folded_words(query.search or "")
        found = [
            conversation.summary
            for conversation in map(self._conversation, filter(parse_conversation_path, list(self._files)))
            if _matches(conversation, query, words)
        ]
        found.sort(key=lambda summary: (summary.updated_at, summary.id), reverse=True)
        page = tuple(found[query.offset : query.offset + query.limit])
        return ConversationPage(conversations=page, total=len(found), limit=query.limit, offset=query.offset)

    def find_conversation(self, conversation: str) -> ConversationSummary | None:
        """A conversation by its id alone."""
        ids = {names[1]: path for path in self._files if (names := parse_conversation_path(path))}
        return self._conversation(ids[conversation]).summary if conversation in ids else None

    def _conversation(self, path: str) -> ConversationFile:
        held = self._files[path]
        known = self._conversations.get(str(held.entry.blob))
        if known is None:
            known = parse(path, held.data)
            self._conversations.put(str(held.entry.blob), known)
        return known


def _entry(data: bytes) -> BlobEntry:
    return BlobEntry(pygit2.hash(data))


def _checked(paths: Mapping[str, T]) -> dict[str, T]:
    return {normalize_path(path): value for path, value in paths.items()}


def _listed(name: str, held: LogFile, *, whole: bool) -> MemoryEntry:
    size = len(held.data) if whole else 0
    return MemoryEntry(path=name, kind="file" if whole else "folder", size=size, modified_at=held.time)


def _best(path: str, data: bytes, words: list[str], *, evidence: bool) -> list[MemoryHit]:
    """The line of a file that holds most of the words, weighed by how many the whole file holds."""
    lines = [
        (passage.line + (0 if parse_conversation_path(path) else number), text)
        for passage in file_passages(path, data)
        if not (evidence and passage.aside)
        for number, text in enumerate(passage.text.split("\n"))
    ]
    texts = [text for _, text in lines]
    best = max(range(len(lines)), key=lambda at: (count_matches(texts[at], words), -at), default=None)
    if best is None or not (held := count_matches("\n".join(texts), words)):
        return []
    score = (held + count_matches(texts[best], words) / 2) / len(words)
    return [
        build_line_hit(
            path, lines[best][0], texts, best, score * (0.5 if parse_conversation_path(path) else 1.0)
        )
    ]


def _matches(conversation: ConversationFile, query: ListConversations, words: list[str]) -> bool:
    summary = conversation.summary
    said = [summary.title or "", *(message.content for message in conversation.messages)] if words else []
    return (
        query.block in (None, summary.block)
        and (query.one_shot or not summary.one_shot)
        and (query.start is None or summary.updated_at >= query.start)
        and (query.end is None or summary.updated_at <= query.end)
        and (not words or count_matches("\n".join(said), words) == len(words))
    )


def _add(tar: tarfile.TarFile, name: str, data: bytes, time: datetime) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(data), int(time.timestamp()), 0o644
    tar.addfile(info, io.BytesIO(data))
