"""The settings of schedules: ``[plugins.pulse]`` of ``trunkline.toml``."""

import os
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from trunkline import ConfigError
from trunkline_pulse.zones import find_zone


class PulseSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[plugins.pulse]``. ``time_zone`` is that of schedules that name none, such as ``Europe/Lisbon``; "" is the time
    zone of the machine.
    """

    time_zone: str = ""

    def __post_init__(self) -> None:
        if self.time_zone and find_zone(self.time_zone) is None:
            raise ConfigError(
                f"plugins.pulse.time_zone is {self.time_zone!r}, and there is no such time zone.",
                hint='Write a name such as "Europe/Lisbon", or leave it out for the time zone of the machine.',
            )

    def zone(self) -> ZoneInfo:
        """Return the time zone of schedules that name none. Raises nothing."""
        return find_zone(self.time_zone or machine_zone_name()) or ZoneInfo("UTC")


def machine_zone_name() -> str:
    """Return the name of the machine's time zone; ``UTC`` if it has no name."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if named and find_zone(named) is not None:
        return named
    try:
        _, found, name = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")
    except OSError:
        return "UTC"
    return name if found and find_zone(name) is not None else "UTC"
