"""Runs a purge: it erases data on the server and in plugins, then memory with its history, and reports the result.

The record in the purge log is written first and completed last. Data that leads to other data is erased last too, so
that an interrupted purge can be completed by repeating it. A conversation with a running turn is not purged, because
the turn would store its messages again at its end.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from trunkline._util.untrusted_text import DATA_NOTE, OWNER_NOTE, wrap_context
from trunkline.contracts.conversations.paths import parse_conversation_id
from trunkline.contracts.memory.initial_files import INITIAL_FILES, block_files
from trunkline.contracts.memory.purge import PURGE_LOG_PATH, Erased, MemoryPurged, PurgeMemory, RemainingCopy
from trunkline.contracts.memory.purger import Purge, Purger
from trunkline.contracts.memory.store import MemoryStore, PurgeResult
from trunkline.contracts.memory.text_match import significant_lines, strip_marks, without_boilerplate
from trunkline.contracts.tools.messages import ToolSpec
from trunkline.workers.memory.change_rules import PurgedTurnRule
from trunkline.workers.memory.purge.external_data import ExternalData
from trunkline.workers.memory.purge.memory_purger import MemoryPurger, combined_filter
from trunkline.workers.memory.purge.purge_log import PurgeLog, PurgeRecord
from trunkline_bus import Refusal, Scope

log = logging.getLogger(__name__)


class PurgeService:
    """Purges one store.

    ``purgers`` are the purgers of plugins. ``external_data`` is the data outside of memory. ``purged_turns`` is the
    rule that refuses changes of purged turns. ``own`` returns the lines that the program itself writes; it is called by
    each purge, because a start does not need them.
    """

    def __init__(
        self,
        store: MemoryStore,
        purgers: Sequence[Purger],
        external_data: ExternalData | None,
        purged_turns: PurgedTurnRule,
        own: Callable[[], frozenset[bytes]] = frozenset,
    ) -> None:
        self._store = store
        self._purgers = tuple(purgers)
        self._external_data = external_data
        self._purged_turns = purged_turns
        self._own_lines = own
        self._purge_log = PurgeLog(store)

    async def load(self) -> None:
        """Read the purge log: tell the rule which turns were purged, and log interrupted purges."""
        try:
            notes, damaged = await self._purge_log.all()
        except Refusal as refusal:
            self._refuse_all_turns(f"{PURGE_LOG_PATH} cannot be read ({refusal.message.rstrip('.')})")
            return
        if damaged:
            self._refuse_all_turns(f"{PURGE_LOG_PATH}:{damaged[0]} cannot be read")
        for note in notes:
            self._purged_turns.add(note.turns)
            if note.state == "begun":
                log.warning(
                    "a purge was cut short; to finish it, run: trunkline memory purge %s", note.target
                )

    def _refuse_all_turns(self, what: str) -> None:
        """Refuse changes of all turns, because it is unknown which turns were purged."""
        text = (
            f"{what}, so it is not known what was purged, and agents cannot write to memory. Take the file back with "
            f'"trunkline memory history {PURGE_LOG_PATH}" and "trunkline memory revert", and start again.'
        )
        log.error("%s", text)
        self._purged_turns.refuse_all(text)

    async def purge(self, request: PurgeMemory, scope: Scope) -> MemoryPurged:
        """Remove a text permanently, and return what was removed and what remains.

        Raises:
            Refusal: ``not_confirmed``, ``not_found`` (history never had the target), ``invalid_path``,
                ``not_supported``, ``turn_running``, or the refusal of a plugin's purger.
            BusError: the purge is incomplete; repeating it completes it.
        """
        _validate(request)
        purge = await self._resolve(request)
        if self._external_data is not None:
            purge = await self._external_data.prepare(purge)
        if not purge.paths and not purge.turns:
            raise Refusal("not_found", f"The history contains no {request.target!r}.")
        note = await self._purge_log.begin(request, purge, datetime.now(UTC), scope)
        self._purged_turns.add(purge.turns)
        erased = await self._erase(purge)
        left = [copy for purger in self._purgers for copy in await purger.erase(purge)]
        purged = await self._take_out(purge, request.actor)
        erased += await self._erase(purge)  # messages that were in flight during the first pass
        erased += await self._erase_orphans(purge)  # last, because both passes delete messages
        kept = (
            *purged.kept,
            *left,
            *(await self._external_data.remaining(purge) if self._external_data is not None else ()),
        )
        return await self._report(
            note, purge, purged, _sum_by_place(erased), merge_by_conversation(kept), scope
        )

    async def _resolve(self, request: PurgeMemory) -> Purge:
        """Return all files, conversations and lines of the target, including those of an interrupted purge. A
        conversation that memory does not have may still be on the server.
        """
        found = await self._store.trace(request.target)
        begun = await self._purge_log.unfinished(request.target)
        known = found if begun is None else found.merged(begun.purge)
        own = self._own_lines()
        known = msgspec.structs.replace(known, lines=without_boilerplate(known.lines, own), own=own)
        named = parse_conversation_id(request.target)
        return (
            known
            if named is None
            else msgspec.structs.replace(known, conversations=known.conversations | {named})
        )

    async def _erase(self, purge: Purge) -> list[Erased]:
        return [] if self._external_data is None else await self._external_data.erase(purge)

    async def _erase_orphans(self, purge: Purge) -> list[Erased]:
        return [] if self._external_data is None else await self._external_data.erase_orphans(purge)

    async def _take_out(self, purge: Purge, actor: str) -> PurgeResult:
        left = combined_filter((MemoryPurger(), *self._purgers))
        if self._external_data is None:
            return await self._store.purge(purge, left, actor=actor)
        async with self._external_data.logs_paused():
            return await self._store.purge(purge, left, actor=actor)

    async def _report(
        self,
        note: PurgeRecord,
        purge: Purge,
        purged: PurgeResult,
        erased: tuple[Erased, ...],
        kept: tuple[RemainingCopy, ...],
        scope: Scope,
    ) -> MemoryPurged:
        version = await self._purge_log.finish(note, purged, scope)
        return MemoryPurged(
            paths=purged.paths,
            commits=purged.commits,
            version=version,
            conversations=tuple(sorted(purge.conversations)),
            changed=purged.changed,
            erased=erased,
            kept=kept,
        )


def _validate(request: PurgeMemory) -> None:
    if request.confirm != request.target:
        raise Refusal(
            "not_confirmed", f"Repeat {request.target!r} to confirm: purged data cannot be restored."
        )
    if request.target.strip("/").split("/")[0] == PURGE_LOG_PATH.split("/")[0]:
        raise Refusal("invalid_path", f"{PURGE_LOG_PATH} records the purges and cannot be purged.")


def _sum_by_place(erased: Sequence[Erased]) -> tuple[Erased, ...]:
    """Return one entry for each place."""
    counts: dict[str, int] = {}
    for one in erased:
        counts[one.where] = counts.get(one.where, 0) + one.count
    return tuple(Erased(where=where, count=count) for where, count in counts.items())


def merge_by_conversation(kept: Sequence[RemainingCopy]) -> tuple[RemainingCopy, ...]:
    """Return the copies with one entry for each conversation. These entries come first."""
    places: dict[str, list[RemainingCopy]] = {}
    for one in kept:
        if one.conversation:
            places.setdefault(one.conversation, []).append(one)
    rest = [one for one in kept if not one.conversation]
    return (*(_merge_kept(conversation, ones) for conversation, ones in places.items()), *rest)


def _merge_kept(conversation: str, kept: Sequence[RemainingCopy]) -> RemainingCopy:
    where = ", ".join(dict.fromkeys(one.where for one in kept))
    ends = [one.until for one in kept if one.until is not None]
    return RemainingCopy(
        where=f"conversation {conversation}",
        what=f"It has lines of it, in {where}. Purge it as well, by this id.",
        until=max(ends) if len(ends) == len(kept) else None,
        conversation=conversation,
    )


def boilerplate_lines(texts: Iterable[str], tools: Iterable[ToolSpec]) -> frozenset[bytes]:
    """Return the lines that the program itself writes: fixed ``texts`` of plugins, descriptions of ``tools``, notes,
    and the initial files of memory.

    These lines are in many files, so no text is recognised by them.
    """
    data = [*INITIAL_FILES.values(), *(text.encode() for text in block_files("main", None, None).values())]
    data += [
        text.encode()
        for text in (*texts, *(wrap_context("", "", note=note) for note in (DATA_NOTE, OWNER_NOTE)))
    ]
    data += [text.encode() for tool in tools for text in (tool.description, *_parameter_texts(tool))]
    return frozenset(strip_marks(line) for one in data for line in significant_lines(one)) - {b""}


def _parameter_texts(tool: ToolSpec) -> Iterable[str]:
    """Yield the descriptions of a tool's parameters."""
    for schema in tool.parameters.get("properties", {}).values():
        if isinstance(schema, dict) and isinstance(schema.get("description"), str):
            yield schema["description"]
