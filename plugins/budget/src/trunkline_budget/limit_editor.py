"""Changes one limit in memory, and records who did it. For ``trunkline budget set`` and the owner's requests."""

import math
from datetime import UTC, datetime

import msgspec

from trunkline import ConfigError, LifespanContext, new_id
from trunkline.api.audit import AUDIT, AuditEntry
from trunkline.api.bus import Bus, BusError
from trunkline.api.memory import MEMORY_WRITE_MANY, OWNER, WriteManyMemory, is_block_name
from trunkline_budget.limits import LIMITS_FILE, LimitChanges, read_changes
from trunkline_budget.settings import BudgetSettings

TIMEOUT = 10.0
TRIES = 5

LIMIT_NAMES = ("max_daily_spend", "max_loops_per_hour", "max_turn_spend", "max_turn_loops")
BLOCK_LIMIT_NAMES = LIMIT_NAMES[:2]


async def set_limit(
    bus: Bus, key: str, value: float | None, plugin: str = "trunkline-budget"
) -> LimitChanges:
    """Set a limit by its key in ``[plugins.budget]``, such as ``blocks.garden.max_daily_spend``. Return all changes.
    None removes the change, so that the limit of ``trunkline.toml`` counts again.

    Raises ConfigError for a limit that cannot be, BusError when memory does not answer.
    """
    path = limit_path(key)
    memory = LifespanContext("gateway", bus, plugin).memory("main")
    for _ in range(TRIES):
        changes, version = await read_changes(memory)
        new = _with_limit(changes, path, value)
        text = msgspec.json.format(msgspec.json.encode(new), indent=2).decode() + "\n"
        said = f"{key} is {value:g}" if value is not None else f"{key} is that of trunkline.toml"
        request = WriteManyMemory(
            files={LIMITS_FILE: text}, expected={LIMITS_FILE: version}, actor=OWNER, reason=f"limit: {said}"
        )
        try:
            await bus.call(MEMORY_WRITE_MANY, request, timeout=TIMEOUT)
        except BusError:
            if (await read_changes(memory))[1] == version:
                raise  # nobody else changed it: the refusal is final
            continue
        await _record(bus, said)
        return new
    raise ConfigError("The limits are being changed by others all the time.", hint="Try again.")


async def current_limits(
    bus: Bus, settings: BudgetSettings, plugin: str = "trunkline-budget"
) -> BudgetSettings:
    """Return the limits that count now. Raises BrokenLimits, BusError."""
    changes, _ = await read_changes(LifespanContext("gateway", bus, plugin).memory("main"))
    return changes.applied_to(settings)


class LimitView(msgspec.Struct, frozen=True, kw_only=True):
    """A limit by its key in ``[plugins.budget]``: its value now, and that of ``trunkline.toml``. None is no limit."""

    key: str
    value: float | None
    configured: float | None


def listed_limits(settings: BudgetSettings, now: BudgetSettings) -> list[LimitView]:
    """Return all limits of everything, of each block, and of the blocks with limits of their own."""
    rows = [
        LimitView(key=name, value=getattr(now, name), configured=getattr(settings, name))
        for name in LIMIT_NAMES
    ]
    for name in BLOCK_LIMIT_NAMES:
        rows.append(
            LimitView(
                key=f"per_block.{name}",
                value=getattr(now.per_block, name),
                configured=getattr(settings.per_block, name),
            )
        )
    for block in sorted(now.blocks):
        for name in BLOCK_LIMIT_NAMES:
            rows.append(
                LimitView(
                    key=f"blocks.{block}.{name}",
                    value=getattr(now.limits_of(block), name),
                    configured=getattr(settings.limits_of(block), name),
                )
            )
    return rows


def limit_path(key: str) -> tuple[str, ...]:
    """Return the parts of a limit's key. Raises ConfigError for one that is no limit."""
    first, *rest = key.split(".")
    whole = not rest and first in LIMIT_NAMES
    each = first == "per_block" and len(rest) == 1 and rest[0] in BLOCK_LIMIT_NAMES
    one = first == "blocks" and len(rest) == 2 and is_block_name(rest[0]) and rest[1] in BLOCK_LIMIT_NAMES
    if not (whole or each or one):
        raise ConfigError(
            f"{key!r} is no limit.",
            hint=f"Limits are {', '.join(LIMIT_NAMES)}, and per_block.NAME and blocks.BLOCK.NAME of the first two.",
        )
    return (first, *rest)


def _with_limit(changes: LimitChanges, path: tuple[str, ...], value: float | None) -> LimitChanges:
    """Return the changes with a limit. Raises ConfigError for a value that cannot be."""
    if value is not None and not math.isfinite(value):
        raise ConfigError(f"{'.'.join(path)} cannot be {value}.", hint="Give a number.")
    raw = msgspec.to_builtins(changes)
    place = raw
    for part in path[:-1]:
        place = place.setdefault(part, {})
    place.pop(path[-1], None)
    if value is not None:
        place[path[-1]] = int(value) if "loops" in path[-1] and value == int(value) else value
    raw["blocks"] = {
        block: limits
        for block, limits in raw.get("blocks", {}).items()
        if any(limit is not None for limit in limits.values())
    }
    try:
        return msgspec.convert(raw, LimitChanges)
    except msgspec.ValidationError as error:
        why = f"{'.'.join(path)} cannot be {value:g}: {error}."
        raise ConfigError(why, hint="Give a larger or a smaller number.") from error


async def _record(bus: Bus, said: str) -> None:
    """Add the change to the audit log."""
    entry = AuditEntry(
        id=new_id("aud"), at=datetime.now(UTC), event="permissions", block="all", actor=OWNER, by=(OWNER,),
        why=f"A limit of budgets was changed: {said}.",
    )  # fmt: skip
    await bus.append(AUDIT, entry, msg_id=entry.id, block=entry.block)
