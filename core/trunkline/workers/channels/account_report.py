"""The state of a channel's account, which ``trunkline doctor`` shows."""

from datetime import UTC, datetime
from typing import Literal

import anyio

from trunkline.contracts.channels.records import STATE_PREFIX, STATE_SECONDS, AccountState, ChannelRecords
from trunkline.errors import Unavailable

REPORT_SECONDS = 60.0
"""Seconds after which an unchanged state is reported again."""


class AccountReport:
    """Reports the state of one account in this process. ``label`` names the account for people.

    Guarantees: a state is stored when it changes, and at most once a minute otherwise.

    Not guaranteed: that a state is stored while the bus does not answer; the next report stores it.
    """

    def __init__(self, records: ChannelRecords, account: str, label: str) -> None:
        self._records = records
        self._account = account
        self._label = label
        self._last = ("", "")
        self._heard_at = float("-inf")
        self._reported_at = float("-inf")

    async def serving(self) -> None:
        """Report that messages are received. Raises nothing."""
        await self._report("serving", f"{self._label} receives messages")

    async def failing(self, why: str) -> None:
        """Report that no messages are received. Raises nothing."""
        await self._report("failing", f"{self._label} receives no messages: {why}")

    async def waiting(self, holder: str) -> None:
        """Report that another process serves the account, and this one waits. Raises nothing."""
        await self._report("waiting", f"{self._label} is served by {holder}, and another process waits")

    async def watch(self, silent_seconds: float) -> None:
        """Report that no messages are received whenever nothing was reported for ``silent_seconds``. Returns only when
        cancelled. Raises nothing.
        """
        self._heard_at = anyio.current_time()
        while True:
            if anyio.current_time() >= self._heard_at + silent_seconds:
                why = f"nothing was heard of the service for {silent_seconds:g} s, or a message waits for a gateway"
                await self._store("failing", f"{self._label} receives no messages: {why}")
            await anyio.sleep(silent_seconds / 4)

    async def _report(self, state: Literal["serving", "waiting", "failing"], text: str) -> None:
        self._heard_at = anyio.current_time()
        await self._store(state, text)

    async def _store(self, state: Literal["serving", "waiting", "failing"], text: str) -> None:
        now = anyio.current_time()
        if (state, text) == self._last and now < self._reported_at + REPORT_SECONDS:
            return
        waits = "waiting" if state == "waiting" else "lease"  # one record for each of two processes
        value = AccountState(state=state, text=text, at=datetime.now(UTC))
        try:
            await self._records.put(f"{STATE_PREFIX}.{self._account}.{waits}", value, ttl=STATE_SECONDS)
        except Unavailable:
            return
        self._last, self._reported_at = (state, text), now
