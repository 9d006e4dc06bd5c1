"""The times that a person writes in a command."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

_AGO = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class LocalTime(click.DateTime):
    """A date or time in local time. The command receives it in UTC."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the time in UTC. Fails if the text is no time, or if UTC has no such year."""
        from trunkline._util.local_time import local_to_utc

        written: datetime = super().convert(value, param, ctx)
        try:
            return local_to_utc(written)
        except ValueError:
            self.fail(f"{str(value)!r} is outside the years 1 to 9999 in UTC.", param, ctx)


def parse_since(text: str) -> datetime:
    """Parse ``30m``, ``2h``, ``7d``, or a date, which is local without an offset. Raises ConfigError."""
    from trunkline._util.local_time import local_to_utc
    from trunkline.errors import ConfigError

    try:
        if found := _AGO.fullmatch(text):
            return datetime.now(UTC) - timedelta(seconds=int(found[1]) * _UNITS[found[2]])
        return local_to_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{text!r} is not a time.", hint="Say 30m, 2h, 7d, or a date such as 2026-11-22."
        ) from None
