"""Stopping a block: a stopped block takes no messages, runs no turn and runs no program.

The stopper refuses new messages, waits for messages that are being admitted, cancels the block's turns, ends
its background tasks, and returns when all of them have ended. If the gateway crashes before that, the block
takes messages again and some of its turns are cancelled; the same command then stops the block completely.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import anyio

from trunkline.contracts.turns.messages import TurnCancelRequested
from trunkline.contracts.turns.subjects import INBOX
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.block_tasks import BlockTasks
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.turn_lookup import TurnLookup
from trunkline_bus import Bus, Scope, new_id
from trunkline_bus.backoff import Backoff

STOP_TIMEOUT = 20.0
"""Seconds that cancelled turns may take to end. A tool call that has an effect always runs to its end."""

POLL_SECONDS, MAX_POLL_SECONDS = 0.1, 1.0
"""Seconds between two polls, doubled after each. A poll reads the inbox and all open approvals."""


@dataclass(frozen=True, slots=True)
class StopResult:
    """The turns that were cancelled and the background tasks that were ended."""

    turns: tuple[str, ...]
    tasks: tuple[str, ...]


class BlockStopper:
    """Admits messages into blocks, and stops blocks.

    Methods raise Refusal, and BusError when the bus does not answer.
    """

    def __init__(self, bus: Bus, turns: TurnLookup, tasks: BlockTasks) -> None:
        self._bus = bus
        self._turns = turns
        self._tasks = tasks
        self._stopped = set[str]()
        self._entering = Counter[str]()
        self._entered = anyio.Event()

    @contextmanager
    def admit(self, block: str) -> Iterator[None]:
        """Admit a message into the block for the time of the context. Refused with ``conflict`` while the
        block is stopped."""
        self._refuse_if_stopped(block)
        self._entering[block] += 1
        try:
            yield
        finally:
            self._entering[block] -= 1
            self._entering += Counter()  # drops the blocks whose count is zero
            self._entered.set()
            self._entered = anyio.Event()

    @asynccontextmanager
    async def stopped(self, block: str, by: str, *, forget: bool = True) -> AsyncIterator[StopResult]:
        """Keep the block stopped for the time of the context; yield the turns and tasks that were ended.

        With ``forget`` the records of its background tasks are removed too. Refused with ``conflict`` when
        the block is being stopped already, or when its turns or tasks do not end.
        """
        self._refuse_if_stopped(block)
        self._stopped.add(block)
        try:
            turns = await self._end_turns(block, by)
            yield StopResult(turns, await self._tasks.end(block, forget=forget))
        finally:
            self._stopped.discard(block)

    def _refuse_if_stopped(self, block: str) -> None:
        if block in self._stopped:
            raise refusal(ErrorCode.CONFLICT, f"The block {block!r} is being stopped.")

    async def _end_turns(self, block: str, by: str) -> tuple[str, ...]:
        cancelled: dict[str, None] = {}
        with anyio.move_on_after(STOP_TIMEOUT):
            while self._entering[block]:
                await self._entered.wait()
            backoff = Backoff(POLL_SECONDS, MAX_POLL_SECONDS)
            while under_way := await self._turns.unfinished_in_block(block):
                for turn in under_way:
                    if turn.turn and turn.turn not in cancelled:
                        await self._cancel(turn, by)
                        cancelled[turn.turn] = None
                await backoff.sleep()
            return tuple(cancelled)
        raise refusal(
            ErrorCode.CONFLICT,
            f"The turns of the block {block!r} were cancelled and have not ended yet, so nothing else was done. Give "
            "the command again when they have; turns end only while the platform runs (trunkline up).",
        )

    async def _cancel(self, turn: Scope, by: str) -> None:
        assert turn.turn is not None and turn.conversation is not None
        item = TurnCancelRequested(turn=turn.turn, by=by, of_block=True)
        await self._bus.append(INBOX, item, scope=turn, msg_id=new_id(), conversation=turn.conversation)
