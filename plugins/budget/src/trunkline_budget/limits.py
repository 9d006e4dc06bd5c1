"""The limits that the owner changed while the platform runs. They are in ``budgets/limits.json`` of memory, which only
the owner may change, and count before those of ``trunkline.toml``.
"""

import logging
from collections.abc import Mapping
from typing import Any

import anyio
import msgspec
from msgspec.structs import replace

from trunkline import ConfigError, ToolError
from trunkline.api.bus import BusError
from trunkline.api.costs import BUDGET_FOLDER
from trunkline_budget.settings import BlockLimits, BudgetSettings, Dollars, Loops

log = logging.getLogger(__name__)

LIMITS_FILE = f"{BUDGET_FOLDER}/limits.json"

FRESH_SECONDS = 1.0
"""Seconds for which the limits are used before the file is read again: a change counts a second later at most."""

STALE_SECONDS = 300.0
"""Seconds for which the last known limits are used while memory does not answer."""


class LimitChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The content of the file: limits as in ``[plugins.budget]``. One that is None or left out is that of
    ``trunkline.toml``.
    """

    max_daily_spend: Dollars | None = None
    max_loops_per_hour: Loops | None = None
    max_turn_spend: Dollars | None = None
    max_turn_loops: Loops | None = None
    per_block: BlockLimits = BlockLimits()
    blocks: dict[str, BlockLimits] = {}

    def applied_to(self, settings: BudgetSettings) -> BudgetSettings:
        """Return the settings with these limits instead of their own. A block that gets a limit of its own keeps the
        others that it has by ``per_block``.
        """
        per_block = _changed(settings.per_block, self.per_block)
        total: BudgetSettings = _changed(settings, self, leave=("per_block", "blocks"))
        whole = replace(total, per_block=per_block)
        own = {block: _changed(whole.limits_of(block), limits) for block, limits in self.blocks.items()}
        return replace(whole, blocks={**whole.blocks, **own})


class BrokenLimits(ConfigError):
    """The file is not what it must be. No model may be called then: nobody knows the limits that were meant."""

    def __init__(self, reason: object) -> None:
        super().__init__(
            f"{LIMITS_FILE} in memory cannot be read as limits of budgets: {reason}.",
            hint="Correct it, or delete it: then the limits of trunkline.toml count.",
        )


def decode_changes(text: str) -> LimitChanges:
    """Return the content of the file. Raises BrokenLimits."""
    try:
        return msgspec.json.decode(text.encode(), type=LimitChanges)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BrokenLimits(error) from error


class LimitSource:
    """The limits that count now: ``settings`` with the owner's changes."""

    def __init__(self, settings: BudgetSettings, memory: Any) -> None:
        self._settings = settings
        self._memory = memory
        self._reading = anyio.Lock()
        self._known: BudgetSettings | None = None
        self._read_at = 0.0

    async def current(self) -> BudgetSettings:
        """Return the limits.

        Raises:
            BrokenLimits: the file is not valid.
            BusError: memory does not answer, and the limits that were last read are too old.
        """
        async with self._reading:
            age = anyio.current_time() - self._read_at
            if self._known is not None and age < FRESH_SECONDS:
                return self._known
            try:
                changes, _ = await read_changes(self._memory)
            except BusError:
                if self._known is not None and age < STALE_SECONDS:
                    return self._known
                raise
            except BrokenLimits:
                self._known = None
                raise
            self._known, self._read_at = changes.applied_to(self._settings), anyio.current_time()
            return self._known


async def read_changes(memory: Any) -> tuple[LimitChanges, str]:
    """Return the owner's changes and the hash of their file, "" if there is none. Raises BrokenLimits, BusError."""
    try:
        file = await memory.read(f"/{LIMITS_FILE}")
    except ToolError as error:
        if error.kind == "not_found":
            return LimitChanges(), ""
        raise BusError(f"the limits of budgets cannot be read: {error}") from error
    return decode_changes(file.content), file.hash


def _changed(limits: Any, changes: Any, leave: tuple[str, ...] = ()) -> Any:
    """Return limits with those of the changes that are not None."""
    fields: Mapping[str, Any] = msgspec.structs.asdict(changes)
    return replace(
        limits, **{name: one for name, one in fields.items() if one is not None and name not in leave}
    )
