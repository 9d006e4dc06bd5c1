"""The host settings of a plugin: the keys of ``[plugins.NAME]`` that belong to the platform and not to the plugin."""

from typing import Annotated, Literal

import msgspec

from trunkline.config.settings import PositiveInt, Seconds


class PluginHostSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``isolation = "process"`` runs the plugin in a separate process, with separate NATS credentials.

    ``isolation_memory`` is the memory limit of that process, in MiB. ``isolation_nice`` is its scheduling priority,
    from 0 to 19; a higher number leaves more time to other processes. The same memory limit, ``isolation_timeout``
    (in seconds) and, for programs, ``isolation_cpus`` and ``isolation_processes`` limit what the plugin declares for
    its tools and for the programs that they run. ``isolation_environ`` names variables that the process receives,
    besides those that the plugin's own sections name as secrets. ``isolation_channels`` are the channels that it
    serves; by default one with the plugin's own name.
    """

    isolation: Literal["none", "process"] = "none"
    isolation_memory: PositiveInt = 1024
    isolation_nice: Annotated[int, msgspec.Meta(ge=0, le=19)] = 5
    isolation_timeout: Seconds = 600.0
    isolation_cpus: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    isolation_processes: PositiveInt = 64
    isolation_environ: tuple[str, ...] = ()
    isolation_channels: tuple[str, ...] | None = None

    @property
    def is_isolated(self) -> bool:
        """Report whether the plugin runs in a separate process."""
        return self.isolation == "process"

    def channels_of(self, name: str) -> tuple[str, ...]:
        """Return the channels of the plugin ``name``."""
        return (name,) if self.isolation_channels is None else self.isolation_channels


HOST_KEYS = frozenset(PluginHostSettings.__struct_fields__)
"""Keys of the platform. A plugin does not receive them, unless it declares them."""
