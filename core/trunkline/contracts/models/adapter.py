"""A model vendor behind one method. An adapter only translates: it does not retry, cache, route or apply policies."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Literal, Protocol

import msgspec

from trunkline.contracts.conversations.messages import Message, ReasoningBlock, ToolCall, Usage
from trunkline.contracts.models.abilities import (
    Embeddings,
    SpeechEvent,
    SpeechFormat,
    SpeechRequest,
    Transcription,
    TranscriptionRequest,
)
from trunkline.contracts.models.constraints import ResponseFormat, ToolChoice
from trunkline.contracts.models.media_usage import NO_MEDIA, MediaUsage
from trunkline.contracts.models.parameters import ModelParameter
from trunkline.contracts.tools.messages import ToolSchema
from trunkline.contracts.turns.turn_route import TurnRoute
from trunkline.errors import ErrorCode, ModelError

Operation = Literal["chat", "embeddings", "transcription", "speech"]
"""What a request asks for, as OpenTelemetry's ``gen_ai.operation.name``. ``chat`` is an answer to messages."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a model.

    ``messages`` is a transcript that every vendor accepts: each tool call has one result, directly after the message
    with the call and in the order of the calls; each result has a call; the ids of calls are unique. ``model`` is the
    vendor's name of the model, "" for the adapter's default. ``partial`` is the beginning of an answer that was
    interrupted; only an adapter with ``continues`` receives one. ``response_format`` is set only if the adapter
    enforces it (``ModelAdapter.enforces_format``). ``parameters`` are parameters of the adapter's table
    (``ModelAdapter.parameters``), validated; they override those of the adapter's settings. ``block``,
    ``conversation``, ``turn``, ``actor``, ``permissions``, ``purpose``, ``route`` (what a turn router decided, None if
    none did) and ``adapter`` (the adapter's name) describe the call to middleware and traces. ``budget_turn`` is the
    turn whose budget the request counts toward, "" for ``turn``: the task of an agent counts toward the budget of the
    turn that it works for. An adapter never sends them to a vendor, but the adapter of another agent loop has to:
    ``permissions`` bound what tool calls for the actor may do (``Identity.permissions``), and are None for a request
    outside of a turn. ``reasoning`` is false for a request that needs no reasoning: Trunkline then sets the parameter
    ``reasoning_effort`` to ``none`` if the model takes it. A middleware may name another ``adapter``, which then
    receives the request. ``key`` is the name of the environment variable with the key to send, "" for the adapter's
    own; only an adapter with ``takes_key`` receives one. ``purpose`` is ``turn`` or the purpose given to
    ``Completer.complete``. ``id`` identifies the request in the cost ledger; it is "" outside of middleware around
    requests.

    ``operation`` is ``chat`` in every request that an adapter streams. The other operations are those of ``embed``,
    ``transcribe`` and ``speak``, which only middleware around requests sees: each text that the vendor receives is a
    message of its own, in the order of the texts. Those of speech are the text and the instructions, that of a
    transcript is the prompt; the recording is not shown. The events of the answer have no text. ``audio_tokens`` and
    ``media`` are upper estimates of what such a request costs beside the tokens of its texts.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    response_format: ResponseFormat | None = None
    model: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    parameters: dict[str, Any] = {}
    partial: str = ""
    block: str = ""
    conversation: str = ""
    turn: str = ""
    budget_turn: str = ""
    actor: str = ""
    permissions: tuple[str, ...] | None = None
    purpose: str = "turn"
    operation: Operation = "chat"
    audio_tokens: int = 0
    media: MediaUsage = NO_MEDIA
    reasoning: bool = True
    route: TurnRoute | None = None
    adapter: str = ""
    key: str = ""
    id: str = ""


class Text(msgspec.Struct, frozen=True):
    """A part of the answer."""

    text: str


class Reasoning(msgspec.Struct, frozen=True):
    """A part of the reasoning that the vendor discloses."""

    text: str


class ReasoningDone(msgspec.Struct, frozen=True):
    """A complete block of reasoning that the vendor requires back in the next request of the turn.

    The block arrives again in ``Message.reasoning`` of the answer that it belongs to, also after a restart. Its text
    was yielded as ``Reasoning`` before, if the vendor discloses it.
    """

    block: ReasoningBlock


class Call(msgspec.Struct, frozen=True):
    """A complete tool call. Calls arrive in the order in which their results must be returned."""

    call: ToolCall


class ToolRan(msgspec.Struct, frozen=True):
    """A tool call that the vendor ran, such as a hosted tool or another agent loop. It is displayed and not run
    again.
    """

    call: ToolCall
    output: str
    error: bool = False


class AnswerSource(msgspec.Struct, frozen=True, kw_only=True):
    """The adapter that answered, its vendor, and the model that the request named ("" for the adapter's default)."""

    adapter: str
    vendor: str
    requested: str

    @property
    def label(self) -> str:
        """``adapter/model``, as preferences and prices write it."""
        return f"{self.adapter}/{self.requested}" if self.requested else self.adapter


class Finish(msgspec.Struct, frozen=True, kw_only=True):
    """The answer is complete. ``reason`` is stop, tool_calls, max_tokens or content_filter.

    Trunkline sets ``source``, ``cost`` and ``price_version``; an adapter leaves them out. ``cost`` is the price of
    ``usage`` in micro-USD, None if the model has no price. ``price_version`` identifies that price (``Rate.version``),
    "" if there is none.
    """

    reason: str = "stop"
    usage: Usage = Usage()
    model: str = ""
    source: AnswerSource | None = None
    cost: int | None = None
    price_version: str = ""


class ModelStatus(msgspec.Struct, frozen=True):
    """A reason for waiting, such as that no key is free. Middleware yields it. It is shown and is no part of the
    answer, so that a call may still be repeated after it.
    """

    text: str


ModelEvent = Text | Reasoning | ReasoningDone | Call | ToolRan | ModelStatus | Finish


Ability = Literal[
    "tools", "images", "documents", "reasoning", "structured", "embeddings", "transcription", "speech"
]


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A model that an adapter offers.

    ``context_window`` and ``max_output`` (of an answer) are in tokens, 0 if unknown. ``abilities`` is None if the
    vendor does not list what the model can do.
    """

    id: str
    context_window: int = 0
    max_output: int = 0
    abilities: frozenset[Ability] | None = None


class ModelAdapter(ABC):
    """One vendor, or one endpoint with a vendor's protocol.

    Guarantees: calls may run concurrently and do not mix. An adapter sends a request once: it does not retry, cache,
    route or apply policies. No error contains a key.

    Not guaranteed: that the vendor does not count a call that failed or was cancelled.
    """

    name: str
    """The adapter's name, used in ``provider_adapter`` and in ``adapter/model``."""

    vendor: str = ""
    """The value of OpenTelemetry's ``gen_ai.provider.name``."""

    default_model: str = ""
    """The model that answers a request without a model; "" if only the vendor knows it. Requests are priced by it."""

    continues: bool = False
    """Whether the vendor can continue a partial answer."""

    sees: bool = False
    """Whether the adapter sends the images of messages (``Message.images``). Other adapters receive no images."""

    reads: bool = False
    """Whether the adapter sends the documents of messages (``Message.documents``). Other adapters receive none."""

    takes_key: bool = False
    """Whether the adapter sends the key that a request names (``ModelRequest.key``) instead of its own."""

    structured: bool = False
    """Whether the vendor enforces ``ModelRequest.response_format``. See ``enforces_format``."""

    parameters: tuple[ModelParameter, ...] = ()
    """The vendor's parameters that settings and requests may set. Trunkline refuses any other parameter."""

    derived: bool = False
    """Whether the answers only repeat what memory and tools gave, so that no search of memory returns them."""

    configured: bool = True
    """Whether everything the adapter needs is set (a key, an address), so that it may be the default if none is
    configured.
    """

    @abstractmethod
    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request to the model, and yield the answer.

        Guarantees: text and reasoning are yielded as they arrive, then the calls, then exactly one ``Finish``, and
        nothing after it. Arguments of a call that are no JSON object are passed on as text under the key ``""``.
        Closing the iterator closes the connection.

        Not guaranteed: a complete answer. The events before a ModelError are used; the caller may ask again with them
        as ``partial``.

        Raises:
            ModelError: for every failure, before the first event or in mid-stream; with ``context_overflow`` if the
                request exceeds the context window, else ``provider_error``. No exception of the vendor's library
                escapes: the monitor logs any other exception, and the call fails as ``bad_response``.
        """

    async def models(self) -> tuple[ModelInfo, ...]:
        """Return the available models; empty if the vendor does not list them. Raises ModelError if the vendor does not
        answer or refuses.
        """
        return ()

    def enforces_format(self, request: ModelRequest) -> bool:
        """Report whether the vendor enforces ``request.response_format`` in the answer to this request; by default
        ``structured``. If not, Trunkline instructs the model, validates the answer and has it repaired once, and
        ``stream`` receives no format. Raises nothing.
        """
        return self.structured

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Return the number of input tokens of the request as the vendor counts them; None if the vendor has no such
        call. Raises ModelError if the vendor does not answer or refuses.
        """
        return None

    embeds: bool = False
    """Whether the adapter implements ``embed``."""

    embedding_model: str = ""
    transcription_model: str = ""
    speech_model: str = ""
    """The models of vectors, transcripts and speech that requests without a model go to; "" if the adapter decides it
    for each request.
    """

    transcribes: bool = False
    """Whether the adapter implements ``transcribe``."""

    translates: bool = False
    """Whether ``transcribe`` can translate (``TranscriptionRequest.translate``)."""

    speech_formats: tuple[SpeechFormat, ...] = ()
    """The formats in which ``speak`` returns audio, the default first; empty if the adapter does not speak."""

    async def embed(
        self, texts: Sequence[str], *, model: str = "", dimensions: int | None = None
    ) -> Embeddings:
        """Return vectors for texts, in their order, by the vendor's embedding model of that name ("" for its default).
        All vectors of a model have the same length: ``dimensions`` if it is given, else the model's own.

        Raises:
            ModelError: for every failure; ``provider_error`` if the vendor has no embeddings, or none of that length.
                The memory worker asks again later.
        """
        raise self._unable("makes no vectors")

    async def transcribe(self, request: TranscriptionRequest) -> Transcription:
        """Return the text of a recording.

        Guarantees: the vendor receives the recording unchanged, once.

        Not guaranteed: language, length and segments, which not every vendor reports.

        Raises:
            ModelError: for every failure; ``provider_error`` if the vendor does not transcribe or translate, or does
            not
                read this type of audio.
        """
        raise self._unable("transcribes no audio")

    def speak(self, request: SpeechRequest) -> AsyncIterator[SpeechEvent]:
        """Yield the audio of a text.

        Guarantees: the audio is yielded as it arrives, then exactly one ``SpeechFinish``, and nothing after it. Closing
        the iterator closes the connection.

        Not guaranteed: several parts. A vendor that does not stream sends one.

        Raises:
            ModelError: for every failure, before the first event or in mid-stream; ``provider_error`` if the vendor
            does
                not speak, or not in this format.
        """
        raise self._unable("does not speak")

    def _unable(self, why: str) -> ModelError:
        return ModelError(ErrorCode.PROVIDER_ERROR, "refused", f"the model adapter {self.name} {why}")

    async def aclose(self) -> None:  # noqa: B027  most adapters have no connections
        """Close the connections. Called once, when the worker drains. Raises nothing. The monitor logs an exception and
        closes the other adapters.
        """


AskModel = Callable[[ModelRequest], AsyncIterator[ModelEvent]]
"""The remaining path to the model. A middleware calls it with the request and yields its events."""


class ModelMiddleware(Protocol):
    """Wraps every model call: retry before the first token, fallback, redaction; or every request, as a budget does.

    Middleware wraps the whole call of a turn's step or of a ``Completer``, unless it has an attribute ``each_request``
    that is True. Then it wraps each request that one call sends to an adapter: the first attempt, each retry and each
    fallback of other middleware, and the repair of an answer in a response format. It wraps requests for vectors,
    transcripts and speech, too (``ModelRequest.operation``), of which it may change the texts and not their number.
    Such middleware is inside all middleware around calls, must not name another ``adapter``, and calls ``proceed`` at
    most once.

    Guarantees: every call of a turn and of a ``Completer`` passes the middleware, that of the first plugin outermost;
    with ``each_request``, every request. The transcript that the adapter receives is valid, whatever the middleware did
    to it.

    Not guaranteed: that an event reaches the person unchanged, or at all, because middleware around this one may change
    it.
    """

    def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        """Yield the events of ``proceed(request)``, changed if needed. ``proceed`` may be called several times, or not
        at all; exactly one ``Finish`` must be yielded, at the end. A ``ModelStatus`` is passed on, and is no event of
        the answer.

        Raises:
            ModelError: the call fails with this error.
            BusError: the bus does not let the middleware decide. A turn calls again when the bus answers. The monitor
                logs any other exception, and the call fails as ``bad_response``.
        """
        ...


def wraps_each_request(middleware: ModelMiddleware) -> bool:
    """Report whether the middleware wraps each request instead of whole calls (``each_request``)."""
    return getattr(middleware, "each_request", False) is True
