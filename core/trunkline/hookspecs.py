"""Every hook of the platform. A hook is a synchronous declaration: it yields objects, and the objects act.

Four ways to take part: **add** (a plural noun that yields objects), **decide** (the first answer that is not None
counts; pure, synchronous), **change** (yield a middleware), **know** (subscribe on the bus, from a lifespan).
An implementation names only the arguments it wants. ``settings`` is the plugin's own ``PluginSettings``.
Each example below is a whole plugin: the tests load it and look that what it yields arrives.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import click

    from trunkline.abc.channels import Channel
    from trunkline.abc.context import ContextSource, TurnInfo, TurnMiddleware
    from trunkline.abc.gateway import AdmissionRule, Authenticator, HttpRoute
    from trunkline.abc.memory import MemoryRule, MemoryStore
    from trunkline.abc.models import ModelAdapter, ModelMiddleware
    from trunkline.abc.platform import ConfigSection, HealthCheck, Lifespan, PluginSettings
    from trunkline.abc.sandbox import Sandbox
    from trunkline.abc.tools import Tool, ToolMiddleware
    from trunkline.messages.gateway import SendMessage
    from trunkline.messages.memory import MemoryHit, SearchMemory
    from trunkline.messages.turn import FeedEvent
    from trunkline.messages.workers import WorkerKind
    from trunkline_bus import BusMiddleware, Payload

PROJECT = "trunkline"
"""The name of pluggy's project and of the entry point group."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function as the implementation of the hook whose name it bears."""


# Every worker ------------------------------------------------------------------------------------------------


@hookspec
def trunkline_config() -> "Iterable[ConfigSection]":
    """Add sections to ``trunkline.toml``; ``settings.section(Type)`` then gives them, checked.

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
    raise NotImplementedError


@hookspec
def trunkline_messages() -> "Iterable[type[Payload]]":
    """Add the payload types that the plugin publishes on its own subjects, for the docs and the dump of a stream.

    ```python
    import trunkline

    class Watered(trunkline.Payload, frozen=True, kw_only=True, tag="garden.watered.v1"):
        plant: str

    @trunkline.hookimpl
    def trunkline_messages():
        return [Watered]
    ```
    """
    raise NotImplementedError


@hookspec
def trunkline_lifespan(worker: "WorkerKind", settings: "PluginSettings") -> "Iterable[Lifespan]":
    """Add something that lives as long as a worker: a subscription, a background task, a connection.

    Raising on entry is logged and leaves the lifespan out; the worker lives.

    ```python
    from contextlib import asynccontextmanager
    import trunkline

    @asynccontextmanager
    async def greet(worker, bus):
        print("hello from", worker)
        yield

    @trunkline.hookimpl
    def trunkline_lifespan(worker):
        return [greet] if worker == "monitor" else []
    ```
    """
    raise NotImplementedError


@hookspec
def trunkline_bus_middleware(settings: "PluginSettings") -> "Iterable[BusMiddleware]":
    """Change, count or hold back every envelope that leaves or enters a worker's connection.

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
    raise NotImplementedError


@hookspec
def trunkline_health_checks(settings: "PluginSettings") -> "Iterable[HealthCheck]":
    """Add checks to ``trunkline doctor``. An id is stable and reads ``area.thing``.

    ```python
    import trunkline

    async def battery():
        return trunkline.HealthResult("warning", "The battery is low.", hint="Plug it in.")

    @trunkline.hookimpl
    def trunkline_health_checks():
        return [trunkline.HealthCheck("laptop.battery", battery)]
    ```
    """
    raise NotImplementedError


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
    raise NotImplementedError


# Monitor -----------------------------------------------------------------------------------------------------


@hookspec
def trunkline_context_sources(settings: "PluginSettings") -> "Iterable[ContextSource]":
    """Put text before the model at the start of a turn, marked as data.

    ```python
    import trunkline

    class Today:
        name = "today"

        async def __call__(self, turn):
            return [trunkline.ContextPart(source="today", text="It is market day.")]

    @trunkline.hookimpl
    def trunkline_context_sources():
        return [Today()]
    ```
    """
    raise NotImplementedError


@hookspec
def trunkline_turn_middleware(settings: "PluginSettings") -> "Iterable[TurnMiddleware]":
    """Stand around a whole turn.

    ```python
    import trunkline

    class Counting:
        turns = 0

        async def __call__(self, turn, proceed):
            self.turns += 1
            await proceed()

    @trunkline.hookimpl
    def trunkline_turn_middleware():
        return [Counting()]
    ```
    """
    raise NotImplementedError


@hookspec(firstresult=True)
def trunkline_stop_turn(turn: "TurnInfo") -> str | None:
    """Decide before each step whether the turn has gone on for long enough: the reason to stop, or None to go on.

    One that raises stops the turn: a bound that is broken must not mean that there is none.

    ```python
    import trunkline

    @trunkline.hookimpl
    def trunkline_stop_turn(turn):
        return "a hundred steps are enough" if turn.step >= 100 else None
    ```
    """
    raise NotImplementedError


@hookspec
def trunkline_models(settings: "PluginSettings") -> "Iterable[ModelAdapter]":
    """Add model vendors.

    ```python
    import trunkline

    class Parrot(trunkline.ModelAdapter):
        name = "parrot"

        async def stream(self, request):
            yield trunkline.Text(request.messages[-1].content)
            yield trunkline.Finish()

    @trunkline.hookimpl
    def trunkline_models():
        return [Parrot()]
    ```
    """
    raise NotImplementedError


@hookspec(firstresult=True)
def trunkline_select_model(turn: "TurnInfo", preference: str) -> str | None:
    """Decide which model answers: ``adapter/model``, or None for the preference.

    ```python
    import trunkline

    @trunkline.hookimpl
    def trunkline_select_model(turn, preference):
        return "parrot/small" if len(turn.request.message.content) < 20 else None
    ```
    """
    raise NotImplementedError


@hookspec
def trunkline_model_middleware(settings: "PluginSettings") -> "Iterable[ModelMiddleware]":
    """Stand around every model call: budget, retry before the first token, fallback, redaction. A guard.

    ```python
    import trunkline

    async def quietly(request, proceed):
        async for event in proceed(request):
            yield trunkline.Text(event.text.lower()) if isinstance(event, trunkline.Text) else event

    @trunkline.hookimpl
    def trunkline_model_middleware():
        return [quietly]
    ```
    """
    raise NotImplementedError


# Gateway -----------------------------------------------------------------------------------------------------


@hookspec
def trunkline_authenticators(settings: "PluginSettings") -> "Iterable[Authenticator]":
    """Add ways to tell who asks, from a request's headers. A guard.

    ```python
    import trunkline

    class Proxy:
        name = "proxy"

        async def __call__(self, headers):
            user = headers.get("x-forwarded-user")
            return trunkline.Identity(id=user) if user else None

    @trunkline.hookimpl
    def trunkline_authenticators():
        return [Proxy()]
    ```
    """
    raise NotImplementedError


@hookspec
def trunkline_admission_rules(settings: "PluginSettings") -> "Iterable[AdmissionRule]":
    """Add rules about which messages are let in. A guard.

    ```python
    import trunkline

    class NoShouting:
        name = "no-shouting"

        async def __call__(self, message, identity):
            if message.content.isupper():
                raise trunkline.Refusal("forbidden", "Please do not shout.")

    @trunkline.hookimpl
    def trunkline_admission_rules():
        return [NoShouting()]
    ```
    """
    raise NotImplementedError


@hookspec(firstresult=True)
def trunkline_route(message: "SendMessage") -> str | None:
    """Decide to which block a message goes that names none.

    ```python
    import trunkline

    @trunkline.hookimpl
    def trunkline_route(message):
        return "garden" if "tomato" in message.content else None
    ```
    """
    raise NotImplementedError


@hookspec
def trunkline_http_routes(settings: "PluginSettings") -> "Iterable[HttpRoute]":
    """Add HTTP routes under ``/x/<plugin>/``.

    ```python
    import trunkline

    async def now(request):
        from starlette.responses import PlainTextResponse
        return PlainTextResponse("noon")

    @trunkline.hookimpl
    def trunkline_http_routes():
        return [trunkline.HttpRoute("/now", ("GET",), now)]
    ```
    """
    raise NotImplementedError


# Tools -------------------------------------------------------------------------------------------------------


@hookspec
def trunkline_tools(settings: "PluginSettings") -> "Iterable[Tool]":
    """Add tools. The signature is the schema, the docstring the description.

    ```python
    import random
    import trunkline

    @trunkline.tool(effect="read")
    def roll(sides: int = 6) -> str:
        \"\"\"Roll a die.\"\"\"
        return str(random.randint(1, sides))

    @trunkline.hookimpl
    def trunkline_tools():
        return [roll]
    ```
    """
    raise NotImplementedError


@hookspec
def trunkline_tool_middleware(settings: "PluginSettings") -> "Iterable[ToolMiddleware]":
    """Stand around every tool call, at one stage of the dispatch. A guard.

    ```python
    import trunkline

    class NightRest:
        stage = "policy"

        async def __call__(self, invocation, proceed):
            if invocation.spec.effect == "exec":
                raise trunkline.ToolError("Programs may not run at night. Ask again in the morning.")
            return await proceed(invocation)

    @trunkline.hookimpl
    def trunkline_tool_middleware():
        return [NightRest()]
    ```
    """
    raise NotImplementedError


@hookspec
def trunkline_sandboxes(settings: "PluginSettings") -> "Iterable[Sandbox]":
    """Add places where programs run, isolated by the operating system.

    ```python
    import trunkline

    class Nowhere(trunkline.Sandbox):
        name = "nowhere"

        async def unavailable(self):
            return "Nothing can run here. Install bubblewrap."

        async def run(self, argv, *, workspace, env, stdin=b"", limits=trunkline.SandboxLimits()):
            return trunkline.SandboxResult(b"", b"", 127, 0.0)

    @trunkline.hookimpl
    def trunkline_sandboxes():
        return [Nowhere()]
    ```
    """
    raise NotImplementedError


# Channels ----------------------------------------------------------------------------------------------------


@hookspec
def trunkline_channels(settings: "PluginSettings") -> "Iterable[Channel]":
    """Add ways in and out for people.

    ```python
    import trunkline

    class Doorbell(trunkline.Channel):
        name = "doorbell"

        async def run(self, gateway):
            await gateway.send(trunkline.SendMessage(content="Somebody is at the door."))

    @trunkline.hookimpl
    def trunkline_channels():
        return [Doorbell()]
    ```
    """
    raise NotImplementedError


@hookspec(firstresult=True)
def trunkline_render(event: "FeedEvent", channel: str) -> str | None:
    """Decide how a channel words an event; None leaves it to the channel.

    ```python
    import trunkline

    @trunkline.hookimpl
    def trunkline_render(event, channel):
        return "(thinking)" if isinstance(event, trunkline.ReasoningDelta) else None
    ```
    """
    raise NotImplementedError


# Memory ------------------------------------------------------------------------------------------------------


@hookspec
def trunkline_memory_stores(settings: "PluginSettings") -> "Iterable[MemoryStore]":
    """Add a store for memory. The memory worker uses that of the plugin which ``[memory] store`` names.

    ```python
    import trunkline

    class Nothing(trunkline.MemoryStore):
        async def _refuse(self, *args, **kwargs):
            raise trunkline.Refusal("not_found", "This store holds nothing.")

        open = aclose = read = change = edit = move = delete = search = list = history = export = _refuse
        append_conversation = load_conversation = list_conversations = find_conversation = _refuse

    @trunkline.hookimpl
    def trunkline_memory_stores():
        return [Nothing()]
    ```
    """
    raise NotImplementedError


@hookspec
def trunkline_memory_rules(settings: "PluginSettings") -> "Iterable[MemoryRule]":
    """Look at every change of memory before it is committed. Synchronous. A guard.

    ```python
    import trunkline

    def small_files_only(change):
        if any(content and len(content) > 1_000_000 for content in change.files.values()):
            raise trunkline.Refusal("write_failure", "A file in memory may have one million bytes at most.")
        return change

    @trunkline.hookimpl
    def trunkline_memory_rules():
        return [small_files_only]
    ```
    """
    raise NotImplementedError


@hookspec(firstresult=True)
def trunkline_rank(query: "SearchMemory", hits: "Sequence[MemoryHit]") -> "Sequence[MemoryHit] | None":
    """Decide the order of what a search found, best first; only hits that were given may be returned.

    ```python
    import trunkline

    @trunkline.hookimpl
    def trunkline_rank(query, hits):
        return sorted(hits, key=lambda hit: hit.path)
    ```
    """
    raise NotImplementedError
