"""The state of the bot, which ``trunkline doctor`` shows."""

from datetime import UTC, datetime
from typing import Literal

import anyio

from trunkline import Unavailable
from trunkline.api.channel import STATE_PREFIX, STATE_SECONDS, AccountState, ChannelRecords

REPORT_SECONDS = 60.0
"""Seconds after which an unchanged state is reported again."""


class AccountReport:
    """Reports the state of one bot in this process. A state that cannot be stored now is stored with a later one."""

    def __init__(self, records: ChannelRecords, account: str) -> None:
        self._records = records
        self._account = account
        self._last = ("", "")
        self._reported_at = float("-inf")

    async def serving(self) -> None:
        """Report that messages are received."""
        await self._report("serving", f"the bot {self._account} receives messages")

    async def failing(self, why: str) -> None:
        """Report that no messages are received."""
        await self._report("failing", f"the bot {self._account} receives no messages: {why}")

    async def waiting(self, holder: str) -> None:
        """Report that another process serves the bot, and this one waits."""
        await self._report(
            "waiting", f"the bot {self._account} is served by {holder}, and another process waits"
        )

    async def _report(self, state: Literal["serving", "waiting", "failing"], text: str) -> None:
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
