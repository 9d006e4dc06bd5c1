"""The audit log: records decisions and actions. No entry about an effect, an approval or a permission is ever
dropped.

Entries are queued and stored on the stream in batches. While the queue is full, the caller waits, which slows down
callers that make more calls than can be recorded. Entries about refusals and reads wait at most WAIT_SECONDS. After
that they are counted by caller and subject, and the counts are recorded when the queue has room again.
"""

import json
import logging
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import anyio
import msgspec
from msgspec import UNSET

from trunkline._util.secrets import REDACTION_MARK
from trunkline._util.secrets.redactor import Redactor
from trunkline.config.settings import AuditDetail
from trunkline.contracts.audit.messages import AuditEntry
from trunkline.contracts.audit.subjects import AUDIT
from trunkline_bus import Bus, BusError, new_id

log = logging.getLogger(__name__)

MOST_WAITING = 2_000
AT_ONCE = 32
"""The number of entries that are stored concurrently."""

PAUSE = 5.0
"""Seconds before a failed store is tried again."""

WAIT_SECONDS = 1.0
"""Seconds that a countable entry waits for room, unless nothing can be stored at all."""

SUMMARY_SECONDS = 5.0
"""Seconds between two records of the counts."""

LAST_SECONDS = 5.0
"""Seconds for which a stopping worker stores the waiting entries."""

MOST_SUMMARIES = 200
"""The number of different counted entries; beyond it only the caller is recorded, then only the number."""

STANDARD_LENGTH, VERBOSE_LENGTH = 200, 10_000
"""Characters of each argument, and of the result with verbose detail."""

LONGEST_SECRET = 4_000
"""Further characters that the redactor reads: a secret that is cut in two is not recognised."""


class AuditLog:
    """Takes entries at any time; ``run`` stores them until cancelled. Secrets that ``secrets`` finds are
    redacted."""

    def __init__(self, bus: Bus, detail: AuditDetail, secrets: Redactor) -> None:
        self._bus = bus
        self._detail = detail
        self._secrets = secrets
        self._waiting: dict[str, AuditEntry] = {}
        """The waiting entries by id, oldest first."""
        self._room = anyio.Semaphore(MOST_WAITING, fast_acquire=True)
        self._some = anyio.Event()
        self._failing = False
        self._summaries = AuditSummaries()
        self._next_summaries = 0.0

    async def record(self, **fields: Any) -> None:
        """Record an entry; the fields are those of ``AuditEntry`` except ``id`` and ``at``. Waits while the
        queue is full."""
        line = new_entry(**fields)
        timeout = math.inf if must_be_stored(line) else 0 if self._failing else WAIT_SECONDS
        with anyio.move_on_after(timeout):
            await self._room.acquire()
            self._waiting[line.id] = line
            self._some.set()
            return
        self._summaries.add(line)

    def count(self, **fields: Any) -> None:
        """Count an entry with others of its kind instead of recording it. The count is recorded within some seconds."""
        self._summaries.add(new_entry(**fields))

    def describe_content(self, arguments: Mapping[str, Any] | str, output: str = "") -> dict[str, Any]:
        """Return the fields of an entry about arguments and result, at the configured level of detail."""
        if self._detail == "minimal":
            return {}
        most = VERBOSE_LENGTH if self._detail == "verbose" else STANDARD_LENGTH
        given = arguments if isinstance(arguments, Mapping) else {"": arguments}
        recorded = {name: self._shorten(name, str(value), most) for name, value in given.items()}
        return {
            "arguments": recorded,
            "output": self._shorten("", output, most) if self._detail == "verbose" else "",
        }

    def _shorten(self, name: str, text: str, most: int) -> str:
        """Return the beginning of a text with secrets redacted: by their form, and by ``name``."""
        seen = self._secrets.redact(text[: most + LONGEST_SECRET])
        try:
            seen = json.loads(self._secrets.redact(json.dumps({name: seen}, ensure_ascii=False)))[name]
        except (ValueError, KeyError):  # the mark broke the JSON
            seen = REDACTION_MARK
        return seen if len(text) <= most and len(seen) <= most else f"{seen[:most]}… ({len(text)} characters)"

    async def run(self) -> None:
        """Store entries until cancelled; then store the waiting ones for LAST_SECONDS."""
        try:
            while True:
                with anyio.move_on_after(SUMMARY_SECONDS):
                    await self._some.wait()
                self._some = anyio.Event()
                while not await self._store():  # noqa: ASYNC110 - a disk has no event to wait for
                    await anyio.sleep(PAUSE)
        finally:
            self._next_summaries = 0.0
            with anyio.move_on_after(LAST_SECONDS, shield=True):
                await self._store()
            if self._waiting:
                log.error(
                    "%d entries of the audit log could not be stored before the end", len(self._waiting)
                )

    async def _store(self) -> bool:
        """Store the waiting entries, then the counts; return whether everything was stored."""
        while self._waiting or self._are_summaries_due():
            # Counts take no place in the queue: a caller that waits may have acquired the free place already.
            if not self._waiting:
                self._waiting = {line.id: line for line in self._summaries.take()}
                self._next_summaries = anyio.current_time() + SUMMARY_SECONDS
            failure = await self._store_some()
            self._failing = failure is not None
            if failure is not None:
                log.error(
                    "the audit log cannot be stored (%d entries wait; calls with an effect wait from %d on): %s",
                    len(self._waiting), MOST_WAITING, failure,
                )  # fmt: skip
                return False
        return True

    def _are_summaries_due(self) -> bool:
        """Report whether there are counts, and the last ones are some seconds old: otherwise each is a count of one."""
        return bool(self._summaries) and anyio.current_time() >= self._next_summaries

    async def _store_some(self) -> BusError | None:
        """Store the oldest entries. A failed entry keeps its place."""
        failures: list[BusError] = []
        async with anyio.create_task_group() as tasks:
            for line in [*islice(self._waiting.values(), AT_ONCE)]:
                tasks.start_soon(self._store_one, line, failures)
        return failures[0] if failures else None

    async def _store_one(self, line: AuditEntry, failures: list[BusError]) -> None:
        try:
            await self._bus.append(AUDIT, line, msg_id=line.id, block=line.block)
        except BusError as error:
            failures.append(error)
        else:
            del self._waiting[line.id]
            if line.count is UNSET:
                self._room.release()


class AuditSummaries:
    """Counts of entries that are not recorded one by one: the number of each kind, and the times of the first
    and last."""

    def __init__(self) -> None:
        self._counted: dict[AuditEntry, tuple[int, datetime, datetime]] = {}

    def __bool__(self) -> bool:
        return bool(self._counted)

    def add(self, line: AuditEntry) -> None:
        """Count an entry with those of its kind."""
        kind = next(kind for kind in _kinds(line) if kind in self._counted or self._has_room(kind))
        number, first, _ = self._counted.get(kind, (0, line.at, line.at))
        self._counted[kind] = (number + 1, first, line.at)

    def take(self) -> list[AuditEntry]:
        """Return the counts, an entry per kind, and reset them."""
        counted, self._counted = self._counted, {}
        return [
            msgspec.structs.replace(kind, id=new_id("audit"), at=last, first=first, count=number)
            for kind, (number, first, last) in counted.items()
        ]

    def _has_room(self, kind: AuditEntry) -> bool:
        return not kind.actor or len(self._counted) < (MOST_SUMMARIES if kind.tool else 2 * MOST_SUMMARIES)


def _kinds(line: AuditEntry) -> tuple[AuditEntry, ...]:
    """Return the kinds that the entry may be counted as, the most specific first. The last kind always has room."""
    at = datetime.fromtimestamp(0, UTC)
    whose = AuditEntry(id="", at=at, event=line.event, block=line.block, actor=line.actor, why=SEVERAL)
    what = msgspec.structs.replace(
        whose,
        tool=line.tool,
        effect=line.effect,
        decision=line.decision,
        by=line.by,
        status=line.status,
        why=line.why,
    )
    return what, whose, msgspec.structs.replace(whose, block=ANY_BLOCK, actor="")


SEVERAL = "calls of several tools."
ANY_BLOCK = "all"


def must_be_stored(line: AuditEntry) -> bool:
    """Report whether the entry must be recorded individually.

    Calls with an effect, and decisions and changes of a person, are recorded individually. Refusals (of sign-ins too),
    and calls that only read or name no tool, may be counted.
    """
    if line.event in ("decision", "auth"):
        return line.decision != "denied"
    return line.event != "call" or line.effect not in ("read", None)


def new_entry(**fields: Any) -> AuditEntry:
    """Return an entry with an id and the time."""
    return AuditEntry(id=new_id("audit"), at=datetime.now(UTC), **fields)
