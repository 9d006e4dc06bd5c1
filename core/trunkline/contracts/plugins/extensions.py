"""The extensions that any plugin may add to any worker: configuration, health checks, a life span, commands."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import msgspec

from trunkline.contracts.workers.messages import WorkerKind
from trunkline_bus import Bus, Scope

if TYPE_CHECKING:
    from trunkline.contracts.memory.client import Memory

_NO_SCOPE = Scope()


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


@dataclass(frozen=True, slots=True)
class LifespanContext:
    """The worker in which a lifespan runs: its kind, its connection to the bus, and the plugin's name.

    The connection has the rights of the worker's NATS account: a call that the account does not have ends in an error.
    """

    worker: WorkerKind
    bus: Bus
    plugin: str

    def memory(self, block: str, *, actor: str = "", scope: Scope = _NO_SCOPE) -> "Memory":
        """The memory of a block. History names ``actor``, by default the plugin, and the conversation and turn of
        ``scope``. No permission of a person is asked: a lifespan decides by itself what it shows to whom.
        """
        from trunkline.contracts.memory.bus_transport import block_memory

        return block_memory(self.bus, block, actor or self.plugin, scope)


class Lifespan(Protocol):
    """Something that lives as long as the worker does.

    Raising on entry is logged and leaves the lifespan out. A task that it starts must not raise: that ends the worker.
    """

    def __call__(self, context: LifespanContext) -> AbstractAsyncContextManager[None]: ...
