"""The text of a schedule's file: reads it, and writes a new one that a person can read. Pure."""

from datetime import datetime
from typing import Any

import msgspec

from trunkline.api.files import SettingsFileError, read_settings
from trunkline.api.schedule import line_of
from trunkline_pulse.schedule import Schedule, schedule_problem


def read_schedule(path: str, text: str) -> Schedule:
    """Return the schedule in a file.

    Raises:
        SettingsFileError: a person must correct the file. The text names the file, the line and the problem.
    """
    schedule = read_settings(path, text, Schedule)
    problem = schedule_problem(schedule)
    if problem is not None:
        key, why = problem
        raise SettingsFileError(f"{path}{line_of(text, key)}: {why}.")
    return schedule


def write_schedule(schedule: Schedule) -> str:
    """Return the text of a file that has the schedule and no more keys than necessary."""
    import tomlkit

    document = tomlkit.document()
    for field in msgspec.structs.fields(schedule):
        value = getattr(schedule, field.name)
        if field.required or value != field.default:
            document.add(field.name, _item(value))
    return tomlkit.dumps(document)


def with_enabled(text: str, enabled: bool) -> str:
    """Return a file's text with ``enabled`` set. Comments and order stay. Raises ValueError if the text is no TOML."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ValueError(str(error)) from error
    if enabled:
        document.pop("enabled", None)
    else:
        document["enabled"] = False
    return tomlkit.dumps(document)


def _item(value: Any) -> Any:
    import tomlkit

    if isinstance(value, str):
        return tomlkit.string(value, multiline="\n" in value)
    if isinstance(value, datetime):
        return value.replace(microsecond=0)
    return value
