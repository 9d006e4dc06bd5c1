"""The monitor's hooks: context, middleware, limits of a turn, and models."""

# A specification has no body.
# pyright: reportReturnType=false

# mypy: disable-error-code="empty-body"
# A specification is never called: pluggy reads its name and arguments, people read its docstring.

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trunkline.contracts.hooks.markers import hookspec

if TYPE_CHECKING:
    from trunkline.contracts.models.adapter import ModelAdapter, ModelMiddleware
    from trunkline.contracts.plugins.extensions import PluginSettings
    from trunkline.contracts.turns.compaction import Compactor
    from trunkline.contracts.turns.context import ContextSource, TurnInfo, TurnMiddleware
    from trunkline.contracts.turns.turn_router import TurnRouter


@hookspec
def trunkline_context_sources(settings: "PluginSettings") -> "Iterable[ContextSource]":
    """Add sources of context: text for the model at the start of a turn. The text is marked as data.

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


@hookspec
def trunkline_turn_middleware(settings: "PluginSettings") -> "Iterable[TurnMiddleware]":
    """Add middleware that wraps a whole turn.

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


@hookspec(firstresult=True)
def trunkline_stop_turn(turn: "TurnInfo") -> str | None:
    """Decide before each step whether to stop the turn. Return the reason to stop, or None to continue.

    If an implementation raises, the turn stops, so that a turn cannot continue without its limit.

    ```python
    import trunkline

    @trunkline.hookimpl
    def trunkline_stop_turn(turn):
        return "a hundred steps are enough" if turn.step >= 100 else None
    ```
    """


@hookspec
def trunkline_models(settings: "PluginSettings") -> "Iterable[ModelAdapter]":
    """Add adapters of model vendors.

    ```python
    import trunkline
    from trunkline.api.model import Finish, ModelAdapter, Text

    class Parrot(ModelAdapter):
        name = "parrot"

        async def stream(self, request):
            yield Text(request.messages[-1].content)
            yield Finish()

    @trunkline.hookimpl
    def trunkline_models():
        return [Parrot()]
    ```
    """


@hookspec
def trunkline_compactors(settings: "PluginSettings") -> "Iterable[Compactor]":
    """Add a compactor: the stage that replaces the first messages of a conversation by a summary. The first one is
    used; to use another than Trunkline's, name ``compaction`` in ``[plugins] disabled``.

    ```python
    import trunkline
    from trunkline.api.turn import Compactor, SummaryDraft

    class Forgetful(Compactor):
        def is_due(self, tokens, window):
            return tokens > window / 2

        async def compact(self, job):
            text = "Nothing of importance was said."
            return SummaryDraft(text=text, count=len(job.messages), model="none")

    @trunkline.hookimpl
    def trunkline_compactors():
        return [Forgetful()]
    ```
    """


@hookspec
def trunkline_turn_routers(settings: "PluginSettings") -> "Iterable[TurnRouter]":
    """Add a turn router, which decides at the start of a turn which tools and which model it uses.

    ```python
    import trunkline
    from trunkline.api.turn import TurnRoute

    class Frugal:
        name = "frugal"

        async def __call__(self, turn, completer):
            if len(turn.request.message.content) < 20:
                return TurnRoute(category="small", reason="a short message", tools=())

    @trunkline.hookimpl
    def trunkline_turn_routers():
        return [Frugal()]
    ```
    """


@hookspec(firstresult=True)
def trunkline_select_model(turn: "TurnInfo", preference: str) -> str | None:
    """Decide which model answers. Return ``adapter/model``, or None for the preference.

    ```python
    import trunkline

    @trunkline.hookimpl
    def trunkline_select_model(turn, preference):
        return "parrot/small" if len(turn.request.message.content) < 20 else None
    ```
    """


@hookspec
def trunkline_model_middleware(settings: "PluginSettings") -> "Iterable[ModelMiddleware]":
    """Add middleware that wraps every model call: retry before the first token, fallback, redaction. A guard.

    Middleware with the attribute ``each_request = True`` wraps each request to an adapter instead. One call may send
    several requests: a retry, a fallback, the repair of an answer. Requests for vectors, transcripts and speech pass
    only such middleware, those of memory's embedder in the worker ``memory``. A budget is such middleware.

    ```python
    import trunkline
    from trunkline.api.model import Text

    async def quietly(request, proceed):
        async for event in proceed(request):
            yield Text(event.text.lower()) if isinstance(event, Text) else event

    class Counting:
        each_request = True
        requests = 0

        async def __call__(self, request, proceed):
            self.requests += 1
            async for event in proceed(request):
                yield event

    @trunkline.hookimpl
    def trunkline_model_middleware():
        return [quietly, Counting()]
    ```
    """
