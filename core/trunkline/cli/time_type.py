"""The parameter type of times that a person writes."""

from datetime import datetime
from typing import Any

import click


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
