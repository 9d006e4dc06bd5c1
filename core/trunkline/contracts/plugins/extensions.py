"""The extensions that any plugin may add to any worker: configuration, health checks, a life span, commands."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import msgspec

from trunkline.contracts.workers.messages import WorkerKind
from trunkline_bus import Bus


@dataclass(frozen=True, slots=True)
class ConfigSection:
    """A plugin's section of ``trunkline.toml``: ``[<table>.<name>]``, decoded into ``type``."""

    table: Literal["plugins", "adapters", "channels"]
    name: str
    type: type[msgspec.Struct]


S = TypeVar("S", bound=msgspec.Struct)


class PluginSettings(Protocol):
    """The argument of a declaring hook: its plugin's own settings, and the platform's to read."""

    @property
    def home(self) -> Path:
        """The home folder."""
        ...

    def section(self, kind: type[S]) -> S:
        """The settings of this type: a section of the platform (``ToolsSettings``), one that the plugin
        declared with ``trunkline_config``, else ``[plugins.<the plugin's name>]``.

        Raises:
            ConfigError: with every key of the section that is unknown or of the wrong type.
        """
        ...


@dataclass(frozen=True, slots=True)
class HealthResult:
    """The result of a check: ``ok``, ``warning`` (works, but look) or ``error``; and what to do about it."""

    status: Literal["ok", "warning", "error"]
    summary: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """A check of ``trunkline doctor``. ``id`` is stable and reads ``area.thing``.

    One that asks somebody over the network is ``online``: it runs only with ``doctor --online``.
    """

    id: str
    check: Callable[[], Awaitable[HealthResult]]
    online: bool = False


class Lifespan(Protocol):
    """Something that lives as long as the worker does."""

    def __call__(self, worker: WorkerKind, bus: Bus) -> AbstractAsyncContextManager[None]: ...
