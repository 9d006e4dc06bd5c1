"""The extensions that a plugin may add to any worker: configuration, health checks, lifespans, commands."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import msgspec

from trunkline.contracts.workers.messages import WorkerKind
from trunkline_bus import Bus, Scope

if TYPE_CHECKING:
    from trunkline.contracts.memory.client import Memory

_NO_SCOPE = Scope()


@dataclass(frozen=True, slots=True)
class SetupField:
    """A setting that ``trunkline init`` asks for. ``name`` is its key in the section, ``question`` the text to ask
    with. ``variables`` are environment variables that the adapter uses without the setting.
    """

    name: str
    question: str
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AdapterSetup:
    """The needs of a model adapter, which ``trunkline init`` asks for.

    ``title`` is the vendor's name for people. ``keys`` are the usual variables of the key, the first one as the
    default; none if the vendor needs no key. ``fields`` are further settings to ask for. ``listed`` is false for a
    vendor that is offered only if its key is set, or by name.
    """

    title: str
    keys: tuple[str, ...] = ()
    fields: tuple[SetupField, ...] = ()
    listed: bool = True


NamedSetting = tuple[tuple[str, ...], str]
"""The path of a setting below its section, and the name that it has."""


@dataclass(frozen=True, slots=True)
class ConfigSection:
    """A plugin's section of ``trunkline.toml``: ``[<table>.<name>]``, decoded into ``type``. ``setup`` belongs to the
    section of a model adapter.

    ``models`` and ``blocks`` return the models (``adapter/model``) and the blocks that the decoded section names, each
    with the path of its setting below the section: ``(("blocks", "garden"), "garden")``. The start and ``trunkline
    doctor`` warn of those that do not exist, which a plugin cannot know.
    """

    table: Literal["plugins", "adapters", "channels"]
    name: str
    type: type[msgspec.Struct]
    setup: AdapterSetup | None = None
    models: "Callable[[Any], Iterable[NamedSetting]] | None" = None
    blocks: "Callable[[Any], Iterable[NamedSetting]] | None" = None


S = TypeVar("S", bound=msgspec.Struct)


class PluginSettings(Protocol):
    """The argument of a hook that adds objects: the plugin's own settings, and read access to the platform's.

    Guarantees: the settings are those with which the process started.

    Not guaranteed: that a later change of ``trunkline.toml`` is seen before a restart.
    """

    @property
    def home(self) -> Path:
        """The home folder. Raises nothing."""
        ...

    def section(self, kind: type[S]) -> S:
        """Return the settings of this type: a section of the platform (``ToolsSettings``), a section that the plugin
        declared with ``trunkline_config``, or ``[plugins.<the plugin's name>]``.

        Raises:
            ConfigError: the section has unknown keys or values of the wrong type; the error lists all of them.
        """
        ...


@dataclass(frozen=True, slots=True)
class HealthResult:
    """The result of a check: ``ok``, ``warning`` (it works but needs attention) or ``error``. ``hint`` says what to
    do.
    """

    status: Literal["ok", "warning", "error"]
    summary: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """A check of ``trunkline doctor``. ``id`` is stable and has the form ``area.thing``.

    An ``online`` check sends requests over the network: it runs only with ``doctor --online``.
    """

    id: str
    check: Callable[[], Awaitable[HealthResult]]
    online: bool = False


@dataclass(frozen=True, slots=True)
class LifespanContext:
    """The worker in which a lifespan runs: its kind, its connection to the bus, and the plugin's name.

    Guarantees: the connection has the permissions of the worker's NATS account, and stays open until the lifespan has
    ended.

    Not guaranteed: that other workers are ready when the lifespan begins. A call that the account may not make fails.
    """

    worker: WorkerKind
    bus: Bus
    plugin: str

    def memory(self, block: str, *, actor: str = "", scope: Scope = _NO_SCOPE) -> "Memory":
        """Return the memory of a block. The history records ``actor``, by default the plugin's name, and the
        conversation and turn of ``scope``. No person's permissions are checked: the lifespan is responsible for whom it
        shows the content. Nothing is requested yet. Raises nothing.
        """
        from trunkline.contracts.memory.bus_transport import block_memory

        return block_memory(self.bus, block, actor or self.plugin, scope)


class Lifespan(Protocol):
    """A context manager that is open while the worker runs.

    Guarantees: the context is entered before the worker answers requests, and left when the worker ends.

    Not guaranteed: that the context is left if the process is killed.
    """

    def __call__(self, context: LifespanContext) -> AbstractAsyncContextManager[None]:
        """Return the context manager.

        Raises:
            Exception: here or on entering. The worker logs the exception and runs without the lifespan. A task that the
                lifespan starts must not raise: an exception there ends the worker.
        """
        ...
