"""A model vendor, behind one method. Adapters translate and nothing else: no retry, cache, routing or policy."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

import msgspec

from trunkline.contracts.conversations.messages import Message, ToolCall, Usage
from trunkline.contracts.tools.messages import ToolSchema
from trunkline.errors import ErrorCode, ModelError


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a model.

    ``messages`` is a transcript that every vendor takes: each tool call has one result, directly after the message that
    made it and in the order of the calls, no result is without its call, and the ids of calls are unique.
    ``model`` is the vendor's name for it ("" = the adapter's default). ``partial`` is text the model had begun to
    answer with before it was interrupted; only an adapter that ``continues`` is ever given one. ``block``,
    ``conversation``, ``turn``, ``actor``, ``purpose`` and ``adapter`` (its name) tell middleware and traces what the
    call is for; an adapter never sends them. ``purpose`` is ``turn`` or what ``Completer.complete`` was told.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    model: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    partial: str = ""
    block: str = ""
    conversation: str = ""
    turn: str = ""
    actor: str = ""
    purpose: str = "turn"
    adapter: str = ""


class Text(msgspec.Struct, frozen=True):
    """A piece of the answer."""

    text: str


class Reasoning(msgspec.Struct, frozen=True):
    """A piece of the reasoning that the vendor shows."""

    text: str


class Call(msgspec.Struct, frozen=True):
    """A complete tool call. Calls come in the order in which their results are to be given back."""

    call: ToolCall


class ToolRan(msgspec.Struct, frozen=True):
    """A tool that the other side has run itself, as a hosted tool or a swapped agent loop: shown, not run again."""

    call: ToolCall
    output: str
    error: bool = False


class Finish(msgspec.Struct, frozen=True, kw_only=True):
    """The answer is complete. ``reason`` is stop, tool_calls, max_tokens or content_filter."""

    reason: str = "stop"
    usage: Usage = Usage()
    model: str = ""


ModelEvent = Text | Reasoning | Call | ToolRan | Finish


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A model that an adapter offers. ``context_window`` is in tokens, 0 when unknown."""

    id: str
    context_window: int = 0


class ModelAdapter(ABC):
    """One vendor, or one endpoint that speaks a vendor's protocol."""

    name: str
    """The adapter's name in ``provider_adapter`` and in ``adapter/model``."""

    vendor: str = ""
    """The value of OpenTelemetry's ``gen_ai.provider.name``."""

    continues: bool = False
    """Whether the vendor can go on from a partial answer."""

    sees: bool = False
    """Whether it sends the pictures of messages (``Message.images``); else it is never given any."""

    derived: bool = False
    """Whether its answers only repeat what memory and tools gave, so that no search of memory returns them."""

    configured: bool = True
    """Whether everything it needs is set (a key, an address), so that it may answer when nobody chose an adapter."""

    @abstractmethod
    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model.

        Yields text and reasoning as they arrive, then the calls, then exactly one ``Finish``, and nothing after it.
        Closing the iterator closes the connection. Nothing is asked a second time.

        Raises:
            ModelError: for every failure, before or in mid-stream; with ``context_overflow`` when the request does
                not fit the window, else ``provider_error``. No vendor exception ever escapes.
        """

    async def models(self) -> tuple[ModelInfo, ...]:
        """The models that can be asked for; empty when the vendor does not say. Raises ModelError."""
        return ()

    embeds: bool = False
    """Whether it has ``embed``."""

    async def embed(self, texts: Sequence[str], *, model: str = "") -> Sequence[Sequence[float]]:
        """Vectors for texts, in their order, by the vendor's embedding model of that name ("" = its default).

        Raises:
            ModelError: for every failure; ``provider_error`` when the vendor has no embeddings.
        """
        raise ModelError(
            ErrorCode.PROVIDER_ERROR, "refused", f"the model adapter {self.name} makes no vectors"
        )

    async def aclose(self) -> None:  # noqa: B027  most adapters hold nothing
        """Let go of connections. Called once, when the worker drains."""


AskModel = Callable[[ModelRequest], AsyncIterator[ModelEvent]]
"""The rest of the way to the model: what a middleware calls with the request, and yields from."""


class ModelMiddleware(Protocol):
    """Stands around every model call: budget, retry before the first token, fallback, redaction."""

    def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        """Yield the events of ``proceed(request)``, changed as the middleware sees fit."""
        ...
