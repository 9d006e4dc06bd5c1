"""A model in this process that answers by a script, for tests and demonstrations. No network, no cost."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import anyio
import msgspec

from trunkline.contracts.conversations.messages import Message, ToolCall, Usage
from trunkline.contracts.models.abilities import (
    Embeddings,
    SpeechEvent,
    SpeechRequest,
    Transcription,
    TranscriptionRequest,
)
from trunkline.contracts.models.adapter import (
    Call,
    Finish,
    ModelAdapter,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Reasoning,
    Text,
    ToolRan,
)
from trunkline.contracts.models.translation import retry_after
from trunkline.errors import ErrorCode, ModelError, ModelFault
from trunkline.testing.script import (
    OVERFLOW,
    CallTools,
    Hang,
    HeardMessage,
    Malformed,
    Miscount,
    RanTools,
    Refuse,
    Say,
    ScriptedCall,
    ScriptedRequest,
    Step,
    Stop,
    Think,
    Wait,
    WebPage,
    answer_by_message,
    pieces,
)
from trunkline.testing.scripted_abilities import AbilityRequest, ScriptedAbilities
from trunkline.testing.vendor_apis.openai_rules import find_violations

Item = ModelEvent | str | float | BaseException | Callable[[], Awaitable[Any]]
"""An item of a reply: an event; a text, sent word by word; seconds of silence; an exception to raise; or a function
to await, such as the ``wait`` of an ``anyio.Event``."""

ReplyItems = str | Iterable[Item]
ModelScript = Callable[[ModelRequest], ReplyItems]


class ScriptedModel(ModelAdapter):
    """Answers by a function of the request, or by a list of replies, one for each request in order.

    By default the last message is the program, in the language of ``trunkline.testing.script``. A reply without a
    ``Finish`` or an exception at its end gets a suitable ``Finish``. ``requests`` contains the requests. ``closed``
    counts the streams that were closed before their end. A request whose transcript violates OpenAI's rules
    (``trunkline.testing.vendor_apis.openai_rules``) fails.

    ::

        model = ScriptedModel([[Call(ToolCall(id="1", name="roll"))], "You rolled a six."])
    """

    vendor = "scripted"
    sees = True
    embeds = True
    transcribes = True
    translates = True
    speech_formats = ("mp3", "opus", "wav", "pcm")

    def __init__(
        self,
        script: ModelScript | Sequence[ReplyItems] | None = None,
        *,
        name: str = "scripted",
        continues: bool = False,
        models: Sequence[ModelInfo] = (ModelInfo(id="scripted"),),
    ) -> None:
        self.name = name
        self.continues = continues
        self.requests: list[ModelRequest] = []
        self.closed = 0
        self._models = tuple(models)
        self._abilities = ScriptedAbilities()
        self._asked: Counter[bytes] = Counter()
        self._script: ModelScript = self._by_program if script is None else _as_function(script)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the reply (see the class)."""
        self.requests.append(request)
        if faults := find_violations(
            "/chat/completions", {"messages": list(map(_as_sent, request.messages))}
        ):
            raise AssertionError(f"OpenAI would have refused the request: {faults[0]}")
        tally = _Tally(request)
        try:
            async for event in _played(self._script(request), tally):
                yield event
        except GeneratorExit:
            self.closed += 1
            raise
        if not tally.finished:
            yield tally.finish()

    async def models(self) -> tuple[ModelInfo, ...]:
        """Return the models that were passed to the constructor."""
        return self._models

    async def embed(
        self, texts: Sequence[str], *, model: str = "", dimensions: int | None = None
    ) -> Embeddings:
        """Return vectors as ``ScriptedAbilities`` does."""
        return await self._abilities.embed(texts, model=model, dimensions=dimensions)

    async def transcribe(self, request: TranscriptionRequest) -> Transcription:
        """Return the text as ``ScriptedAbilities`` does."""
        return await self._abilities.transcribe(request)

    def speak(self, request: SpeechRequest) -> AsyncIterator[SpeechEvent]:
        """Yield the audio as ``ScriptedAbilities`` does."""
        return self._abilities.speak(request)

    @property
    def ability_requests(self) -> list[AbilityRequest]:
        """The requests for vectors (as texts), transcripts and speech."""
        return self._abilities.requests

    def _by_program(self, request: ModelRequest) -> Iterator[Item]:
        heard = _heard(request)
        key = msgspec.json.encode([(line.role, line.text) for line in heard.lines])
        again = self._asked[key]
        self._asked[key] += 1
        for step in answer_by_message(replace(heard, again=again)):
            yield from _items(step, f"call_{len(heard.lines)}")


class _Tally:
    """Counts the content of a reply, for the usage of a ``Finish`` that the script omits."""

    def __init__(self, request: ModelRequest) -> None:
        self._input = sum(len(message.content.split()) for message in request.messages)
        self._output = 0
        self._calls = False
        self._model = request.model
        self.finished = False

    def see(self, event: ModelEvent) -> None:
        if isinstance(event, Text | Reasoning):
            self._output += len(event.text.split())
        self._calls |= isinstance(event, Call)
        self.finished |= isinstance(event, Finish)

    def finish(self, reason: str = "") -> Finish:
        usage = Usage(input_tokens=self._input, output_tokens=self._output)
        reason = reason or ("tool_calls" if self._calls else "stop")
        return Finish(reason=reason, usage=usage, model=self._model or "scripted")


async def _played(reply: ReplyItems, tally: _Tally) -> AsyncIterator[ModelEvent]:
    for item in [reply] if isinstance(reply, str) else reply:
        if isinstance(item, BaseException):
            raise item
        if isinstance(item, int | float):
            await anyio.sleep(item)
        elif isinstance(item, str):
            for piece in pieces(item):
                tally.see(Text(piece))
                yield Text(piece)
        elif isinstance(item, ModelEvent):
            event = tally.finish(item.reason) if isinstance(item, Finish) and not item.model else item
            tally.see(event)
            yield event
        else:
            await item()
        await anyio.lowlevel.checkpoint()


def _as_function(script: ModelScript | Sequence[ReplyItems]) -> ModelScript:
    if callable(script):
        return script
    waiting = iter(script)

    def reply(request: ModelRequest) -> ReplyItems:
        ended = ModelError(ErrorCode.PROVIDER_ERROR, "unavailable", "the script has no more replies")
        return next(waiting, [ended])

    return reply


def _as_sent(message: Message) -> dict[str, Any]:
    """Return the message in the vendor's format, as far as the rules need it."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()},
        }
        for call in message.tool_calls
    ]
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    return {**sent, "tool_call_id": message.tool_call_id, **({"tool_calls": calls} if calls else {})}


def _heard(request: ModelRequest) -> ScriptedRequest:
    lines = (
        HeardMessage(
            role=message.role, text=message.content, calls=tuple(call.name for call in message.tool_calls)
        )
        for message in request.messages
    )
    return ScriptedRequest(lines=tuple(lines), tools=tuple(tool.name for tool in request.tools))


def _items(step: Step, call_id: str) -> Iterator[Item]:
    """Yield the items of one step for a model in this process."""
    match step:
        case Say(text, pause):
            for number, piece in enumerate(pieces(text)):
                yield from (pause, Text(piece)) if number and pause else (Text(piece),)
        case Think(text):
            yield from (Reasoning(piece) for piece in pieces(text))
        case CallTools(calls):
            yield from (Call(_call(request, f"{call_id}_{number}")) for number, request in enumerate(calls))
        case RanTools(request, output):
            yield ToolRan(_call(request, call_id), output)
        case Wait(None) | Hang():
            yield anyio.sleep_forever
        case Wait(float(seconds)):
            yield seconds
        case Miscount():
            return
        case Stop(reason):
            yield Finish(reason=reason)
        case _:
            yield _fault(step)


def _call(request: ScriptedCall, call_id: str) -> ToolCall:
    arguments = request.arguments if isinstance(request.arguments, dict) else {"": request.arguments}
    return ToolCall(id=call_id, name=request.name, arguments=arguments)


def _fault(step: Step) -> ModelError:
    if step == OVERFLOW:
        return ModelError(ErrorCode.CONTEXT_OVERFLOW, "refused", OVERFLOW.message)
    if isinstance(step, Refuse):
        fault = _FAULTS.get(step.status, "unavailable" if step.status >= 500 else "refused")
        pause = retry_after({name.lower(): value for name, value in step.headers})
        return ModelError(ErrorCode.PROVIDER_ERROR, fault, step.message, retry_after=pause)
    fault = "bad_response" if isinstance(step, Malformed | WebPage) else "interrupted"
    return ModelError(ErrorCode.PROVIDER_ERROR, fault, f"scripted: {type(step).__name__}")


_FAULTS: dict[int, ModelFault] = {401: "authentication", 403: "authentication", 429: "rate_limited"}
