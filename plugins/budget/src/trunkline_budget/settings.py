"""The section ``[plugins.budget]``."""

from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from trunkline import ConfigError

Dollars = Annotated[float, msgspec.Meta(ge=0.000_1, le=1_000_000_000)]
Loops = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]


class BlockLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of one block. None is no limit."""

    max_daily_spend: Dollars | None = None
    max_loops_per_hour: Loops | None = None


class BudgetSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.budget]``. None is no limit. Spending is in US dollars.

    ``max_daily_spend`` and ``max_loops_per_hour`` limit all blocks together. ``per_block`` limits each block that has
    no limits of its own in ``blocks``. ``max_turn_spend`` and ``max_turn_loops`` limit each turn. A loop is one step of
    an agent: one call of a model by a turn, or by a tool or background work. Days and hours are those of ``time_zone``
    (a name of the IANA database), by default of this machine.
    """

    max_daily_spend: Dollars | None = None
    max_loops_per_hour: Loops | None = None
    max_turn_spend: Dollars | None = None
    max_turn_loops: Loops | None = None
    per_block: BlockLimits = BlockLimits()
    blocks: dict[str, BlockLimits] = {}
    time_zone: str = ""
    currency: Literal["USD"] = "USD"

    def __post_init__(self) -> None:
        try:
            self.zone  # noqa: B018 - raises for an unknown name
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ConfigError(
                f"plugins.budget.time_zone is {self.time_zone!r}, and there is no such time zone.",
                hint="Use a name of the IANA database, such as Europe/Berlin.",
            ) from None

    @property
    def zone(self) -> ZoneInfo | None:
        """The time zone of days and hours; None for that of this machine."""
        return ZoneInfo(self.time_zone) if self.time_zone else None

    def limits_of(self, block: str) -> BlockLimits:
        """Return the limits of a block."""
        return self.blocks.get(block, self.per_block)

    def named_blocks(self) -> list[tuple[tuple[str, ...], str]]:
        """Return the blocks with limits of their own, each with its setting."""
        return [(("blocks", block), block) for block in self.blocks]

    @property
    def limits_spend(self) -> bool:
        """Report whether any spending is limited."""
        blocks = (self.per_block, *self.blocks.values())
        limits = (self.max_daily_spend, self.max_turn_spend, *(one.max_daily_spend for one in blocks))
        return any(limit is not None for limit in limits)

    @property
    def limits_loops(self) -> bool:
        """Report whether any loops are limited."""
        blocks = (self.per_block, *self.blocks.values())
        limits = (self.max_loops_per_hour, self.max_turn_loops, *(one.max_loops_per_hour for one in blocks))
        return any(limit is not None for limit in limits)
