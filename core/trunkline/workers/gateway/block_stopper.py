"""Stopping a block: while it is stopped it takes no messages, no turn of it is under way, and no program of it runs.

Whoever stops a block takes no new message into it, waits for those that are being taken in, cancels its turns, ends its
background tasks, and goes on when all of them have ended. A gateway that dies meanwhile leaves a block that takes
messages again, with some of its turns cancelled; the same command stops it then.
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

STOP_TIMEOUT = 20.0
"""How long turns may take to end once they are cancelled. A call that has an effect is never cut in its middle."""

LOOK_SECONDS, LONGEST_LOOK = 0.1, 1.0
"""Between two looks, each twice as far from the last: a look reads the inbox and all open questions."""


@dataclass(frozen=True, slots=True)
class StopResult:
    """What a stop ended: turns that were cancelled, and background tasks."""

    turns: tuple[str, ...]
    tasks: tuple[str, ...]


class BlockStopper:
    """Lets messages into blocks, and stops blocks. Raises Refusal, and BusError when the bus does not answer."""

    def __init__(self, bus: Bus, turns: TurnLookup, left: BlockTasks) -> None:
        self._bus = bus
        self._turns = turns
        self._left = left
        self._stopped = set[str]()
        self._entering = Counter[str]()
        self._entered = anyio.Event()

    @contextmanager
    def admit(self, block: str) -> Iterator[None]:
        """A message is on its way into the block. Refused with ``conflict`` while it is stopped."""
        self._refuse_if_stopped(block)
        self._entering[block] += 1
        try:
            yield
        finally:
            self._entering[block] -= 1
            self._entering += Counter()  # without those that are at nought
            self._entered.set()
            self._entered = anyio.Event()

    @asynccontextmanager
    async def stopped(self, block: str, by: str, *, forget: bool = True) -> AsyncIterator[StopResult]:
        """Within it the block is stopped; gives what was ended. With ``forget`` what its background tasks left goes
        too. Refused with ``conflict`` when somebody else is at it, or when its turns or tasks do not end."""
        self._refuse_if_stopped(block)
        self._stopped.add(block)
        try:
            turns = await self._end_turns(block, by)
            yield StopResult(turns, await self._left.end(block, forget=forget))
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
            pause = LOOK_SECONDS
            while under_way := await self._turns.unfinished_in_block(block):
                for turn in under_way:
                    if turn.turn and turn.turn not in cancelled:
                        await self._cancel(turn, by)
                        cancelled[turn.turn] = None
                await anyio.sleep(pause)
                pause = min(2 * pause, LONGEST_LOOK)
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
