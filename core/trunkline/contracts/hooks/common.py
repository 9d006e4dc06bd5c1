"""The hooks that every worker calls."""

# A specification has no body.
# pyright: reportReturnType=false

# mypy: disable-error-code="empty-body"
# A specification is never called: pluggy reads its name and arguments, people read its docstring.

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trunkline.contracts.hooks.markers import hookspec

if TYPE_CHECKING:
    import click

    from trunkline.contracts.plugins.extensions import ConfigSection, HealthCheck, Lifespan, PluginSettings
    from trunkline.contracts.workers.messages import WorkerKind
    from trunkline_bus import BusMiddleware, Payload


@hookspec
def trunkline_config() -> "Iterable[ConfigSection]":
    """Add sections to ``trunkline.toml``. ``settings.section(Type)`` returns the checked section.

    ```python
    import msgspec
    import trunkline

    class Weather(msgspec.Struct, frozen=True):
        city: str = "Lisbon"
        key: trunkline.Secret | None = None

    @trunkline.hookimpl
    def trunkline_config():
        return [trunkline.ConfigSection("plugins", "weather", Weather)]
    ```
    """


@hookspec
def trunkline_messages() -> "Iterable[type[Payload]]":
    """Add the payload types that the plugin publishes on its own subjects. ``trunkline plugins messages`` shows them.

    ```python
    import trunkline
    from trunkline.api.bus import Payload

    class Watered(Payload, frozen=True, kw_only=True, tag="garden.watered.v1"):
        plant: str

    @trunkline.hookimpl
    def trunkline_messages():
        return [Watered]
    ```
    """


@hookspec
def trunkline_lifespan(worker: "WorkerKind", settings: "PluginSettings") -> "Iterable[Lifespan]":
    """Add a context manager that is open as long as a worker runs: a subscription, a background task, a connection.

    If entering raises, the worker logs the error and runs without the lifespan. ``context`` is a ``LifespanContext``
    with the kind of the worker, the bus, and the memory of a block as ``context.memory(block)``. Other workers may
    not be ready on entry, so call them in a task.

    ```python
    from contextlib import asynccontextmanager
    import trunkline

    @asynccontextmanager
    async def greet(context):
        print("hello from", context.worker)
        yield

    @trunkline.hookimpl
    def trunkline_lifespan(worker):
        return [greet] if worker == "monitor" else []
    ```
    """


@hookspec
def trunkline_bus_middleware(settings: "PluginSettings") -> "Iterable[BusMiddleware]":
    """Add middleware for every envelope that leaves or enters a worker's connection: to change, count or withhold it.

    ```python
    import trunkline

    class Counting:
        messages = 0

        async def __call__(self, message, proceed):
            self.messages += 1
            await proceed(message)

    @trunkline.hookimpl
    def trunkline_bus_middleware():
        return [Counting()]
    ```
    """


@hookspec
def trunkline_health_checks(settings: "PluginSettings") -> "Iterable[HealthCheck]":
    """Add checks to ``trunkline doctor``. A check has a stable id of the form ``area.thing``.

    ```python
    import trunkline

    async def battery():
        return trunkline.HealthResult("warning", "The battery is low.", hint="Plug it in.")

    @trunkline.hookimpl
    def trunkline_health_checks():
        return [trunkline.HealthCheck("laptop.battery", battery)]
    ```
    """


@hookspec
def trunkline_commands(settings: "PluginSettings") -> "Iterable[click.Command]":
    """Add commands to the ``trunkline`` program.

    ```python
    import click
    import trunkline

    @click.command()
    def moon():
        click.echo("It is waning.")

    @trunkline.hookimpl
    def trunkline_commands():
        return [moon]
    ```
    """
