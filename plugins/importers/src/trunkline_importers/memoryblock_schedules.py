"""memoryblock's schedules, ``pulse.json`` and the older ``crons.json`` of a block, as files ``schedules/NAME.toml``.

Every imported schedule is off: the other system may still run it, and what it does was never approved here. So an
import starts nothing; ``trunkline schedules resume NAME`` switches a schedule on.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.api.importer import ImportedFile, ImportGap
from trunkline.api.schedule import is_schedule_name, schedule_path
from trunkline_importers.conversion import (
    EPOCH,
    as_list,
    as_mapping,
    digest,
    parse_time,
    to_text,
    toml_settings,
)

SCHEDULE_FILES = ("pulse.json", "crons.json")

_TYPES = ("script", "alert", "cron", "log", "webhook")
_CONDITION = re.compile(r"\s*(memory_percent|uptime)\s*(>=|<=|==|>|<)\s*-?\d+(\.\d+)?\s*")
_CRON_ITEM = re.compile(r"(?:\*|(\d{1,4})(?:-(\d{1,4}))?)(?:/([1-9]\d{0,3}))?", re.ASCII)
_CRON_LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""The smallest and largest number of minute, hour, day, month and weekday."""

_DAY, _WEEKDAY = 2, 4


class _Untranslatable(Exception):
    """An entry has no equivalent; the text says why."""


def read_schedules(
    value: object, block: str, path: str, taken: set[str]
) -> Iterator[ImportedFile | ImportGap]:
    """Yield the schedules of a file, and a gap for each entry that cannot be one or behaves differently.

    ``taken`` has the names of the block's schedules so far, and gets the new ones.
    """
    table = as_mapping(value)
    entries = as_list(value) or next(
        (found for key in ("instructions", "crons", "jobs") if (found := as_list(table.get(key)))), []
    )
    for number, entry in enumerate(map(as_mapping, entries), 1):
        id = to_text(entry.get("id") or entry.get("name")) or f"entry {number}"
        what = f"{path}: {id}"
        try:
            settings = _settings(entry)
        except _Untranslatable as error:
            yield ImportGap(what=what, why=f"it was not imported: {error}")
            continue
        name = _new_name(id, settings, taken)
        yield ImportedFile(path=schedule_path(block, name), data=toml_settings(**settings), source=what)
        yield ImportGap(
            what=what,
            why="imported schedules are off",
            hint=f"Read {schedule_path(block, name)}, then: trunkline schedules resume {name} --block {block}",
        )
        if (target := to_text(entry.get("target"))) and target != block:
            yield ImportGap(what=what, why=f"its target {target!r} is ignored, as it was in memoryblock")


def _new_name(id: str, settings: Mapping[str, object], taken: set[str]) -> str:
    """Add a name that no other schedule of the block has, always the same one for the same files, and return it."""
    name = re.sub(r"[^a-z0-9_-]+", "-", id.lower()).strip("-_")[:48].strip("-_")
    unique = digest(id, to_text(settings), length=8)
    if not is_schedule_name(name):
        name = f"schedule-{unique}"
    if name in taken:
        name = f"{name}-{unique}"
    taken.add(name)
    return name


def _settings(entry: Mapping[str, Any]) -> dict[str, object]:
    """Return the keys of a schedule's file. Raises _Untranslatable."""
    instruction = to_text(entry.get("instruction") or entry.get("prompt"))
    if not instruction.strip():
        raise _Untranslatable("it has no instruction")
    type = to_text(entry.get("type")) or "cron"
    if type not in _TYPES:
        raise _Untranslatable(f"there is no type {type!r}")
    if type == "webhook" and not instruction.strip().startswith(("http://", "https://")):
        raise _Untranslatable("the instruction of a webhook must be an address")
    settings: dict[str, object] = {"instruction": instruction, "type": type, **_times(entry)}
    if expires := entry.get("expiresAt"):
        at = parse_time(expires)
        if at == EPOCH:
            raise _Untranslatable(f"its expiry {to_text(expires)!r} is no time")
        settings["expires"] = at
    if condition := to_text(entry.get("condition")):
        if not _CONDITION.fullmatch(condition):
            raise _Untranslatable(f"its condition {condition!r} is not known")
        settings["condition"] = condition
    told = entry.get("alertMonitor")
    if isinstance(told, bool) and told != (type == "alert"):
        settings["announce"] = told
    return {**settings, "enabled": False}


def _times(entry: Mapping[str, Any]) -> dict[str, object]:
    """Return the key that says when: memoryblock's cron expression counts more than its interval."""
    cron = " ".join(to_text(entry.get("cronExpression") or entry.get("cron_expression")).split())
    if cron:
        return {"cron": _checked_cron(cron)}
    interval = entry.get("interval")
    if isinstance(interval, bool) or not isinstance(interval, int | float) or not interval >= 1:
        raise _Untranslatable("it has no cron expression, and no interval of a second or more")
    return {"every": int(min(interval, 10 * 365 * 86_400))}


def _checked_cron(line: str) -> str:
    """Return a cron line of five fields. Raises _Untranslatable if it means nothing, or another thing here."""
    fields = line.split(" ")
    if len(fields) != len(_CRON_LIMITS) or not all(map(_is_cron_field, fields, _CRON_LIMITS)):
        raise _Untranslatable(f"{line!r} is no cron line of five fields with numbers")
    if fields[_DAY] != "*" and fields[_WEEKDAY] != "*":
        raise _Untranslatable(
            f"{line!r} names a day and a weekday: memoryblock waited for both, a schedule here for either"
        )
    return line


def _is_cron_field(text: str, limits: tuple[int, int]) -> bool:
    for item in text.split(","):
        found = _CRON_ITEM.fullmatch(item)
        numbers = [int(number) for number in (found[1], found[2]) if number] if found else []
        if found is None or sorted(numbers) != numbers:
            return False
        if any(not limits[0] <= number <= limits[1] for number in numbers):
            return False
    return True
