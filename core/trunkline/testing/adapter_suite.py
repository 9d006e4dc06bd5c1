"""The contract of a model adapter, as a test suite for any adapter.

Subclass ``AdapterSuite`` and implement ``situation``. If the adapter uses OpenAI's protocol or the agent loop's,
subclass ``ScriptedProviderSuite`` instead, which implements all situations with a real HTTP server::

    from trunkline.api.testing import ScriptedProviderSuite

    class TestMine(ScriptedProviderSuite):
        def adapter(self, provider, key):
            return MyAdapter(base_url=provider.url, key=key)

List the situations that the protocol does not have in ``lacks``, with the reason.
"""

import socket
import traceback
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

import anyio
import pytest

from trunkline.contracts.conversations.messages import Message, ToolCall
from trunkline.contracts.models.adapter import (
    Call,
    Finish,
    ModelAdapter,
    ModelEvent,
    ModelRequest,
    Reasoning,
    Text,
)
from trunkline.contracts.tools.messages import ToolSchema
from trunkline.errors import ErrorCode, ModelError
from trunkline.testing.contract_suite import ContractSuite
from trunkline.testing.scripted_provider import ScriptedProvider

T = TypeVar("T")

SituationName = Literal[
    "text",
    "reasoning",
    "calls",
    "text_and_calls",
    "bad_arguments",
    "limit",
    "miscounted",
    "endless",
    "silent",
    "unauthorized",
    "rate_limited",
    "server_error",
    "overloaded",
    "unreachable",
    "malformed",
    "garbage",
    "empty",
    "cut",
    "quit",
    "overflow",
]

SENTENCE = "The harbour is calm tonight."
REASONING_TEXT = "Boats do not move."
CALLS: tuple[tuple[str, dict[str, str]], ...] = (("look", {"at": "sea"}), ("listen", {"to": "wind"}))
KEY = "sk-canary-0123456789abcdef"
"""The key that the adapter receives. No error may contain it."""

RETRY_AFTER = 7.0
"""The seconds after which the server of ``rate_limited`` accepts another request."""

DEADLINE_SECONDS = 60.0
"""Seconds within which an immediate reaction must occur, even on a loaded machine."""

FAULTS: dict[SituationName, tuple[ErrorCode, frozenset[str]]] = {
    "unauthorized": (ErrorCode.PROVIDER_ERROR, frozenset({"authentication"})),
    "rate_limited": (ErrorCode.PROVIDER_ERROR, frozenset({"rate_limited"})),
    "server_error": (ErrorCode.PROVIDER_ERROR, frozenset({"unavailable"})),
    "overloaded": (ErrorCode.PROVIDER_ERROR, frozenset({"unavailable", "rate_limited"})),
    "unreachable": (ErrorCode.PROVIDER_ERROR, frozenset({"unavailable"})),
    "malformed": (ErrorCode.PROVIDER_ERROR, frozenset({"bad_response"})),
    "garbage": (ErrorCode.PROVIDER_ERROR, frozenset({"bad_response"})),
    "empty": (ErrorCode.PROVIDER_ERROR, frozenset({"bad_response", "interrupted"})),
    "cut": (ErrorCode.PROVIDER_ERROR, frozenset({"interrupted"})),
    "quit": (ErrorCode.PROVIDER_ERROR, frozenset({"interrupted"})),
    "overflow": (ErrorCode.CONTEXT_OVERFLOW, frozenset({"refused"})),
}
"""Every situation that must end in a ModelError, with the code and the permitted faults."""


@dataclass(frozen=True, slots=True)
class Situation:
    """An adapter, and a request whose answer is known.

    ``arrived`` returns the number of requests that the server received. ``left`` reports whether the server saw the
    connection close before the answer was complete. Both are None without a server.
    """

    adapter: ModelAdapter
    request: ModelRequest
    arrived: Callable[[], int] | None = None
    left: Callable[[], bool] | None = None


class AdapterSuite(ContractSuite, ABC):
    """The contract of every adapter."""

    lacks: ClassVar[Mapping[SituationName, str]] = {}
    """Situations that the adapter does not have, each with the reason."""

    sentence: ClassVar[str] = SENTENCE
    """The text of the answers."""

    counts: ClassVar[bool] = True
    """Whether the server counts tokens."""

    @abstractmethod
    def situation(self, name: SituationName) -> AbstractAsyncContextManager[Situation]:
        """Create a situation.

        ``text`` answers ``sentence``. ``reasoning`` reasons THOUGHT and answers ``sentence``. ``calls`` makes CALLS.
        ``text_and_calls`` answers ``sentence`` and makes CALLS. ``bad_arguments`` calls ``look`` with arguments that
        are not JSON. ``limit`` is stopped by the limit of tokens. ``endless`` begins to answer and does not end.
        ``silent`` never begins. ``miscounted`` answers ``sentence`` and counts negative numbers of tokens.
        ``malformed``, ``cut`` and ``quit`` (no finish reason) occur after some text.
        """

    @pytest.mark.anyio
    async def test_text_arrives_in_pieces_followed_by_one_finish(self) -> None:
        """The text arrives in several pieces, and exactly one Finish follows at the end."""
        events = await self._events("text")
        assert "".join(event.text for event in events if isinstance(event, Text)) == self.sentence
        assert len([event for event in events if isinstance(event, Text)]) > 1
        assert [event for event in events if isinstance(event, Finish)] == [events[-1]]
        assert _finish(events).reason == "stop"

    @pytest.mark.anyio
    async def test_usage_is_reported(self) -> None:
        """The Finish contains the provider's token counts."""
        if not self.counts:
            pytest.skip("there are no tokens to count")
        usage = _finish(await self._events("text")).usage
        assert usage.input_tokens > 0
        assert usage.output_tokens > 0

    @pytest.mark.anyio
    async def test_wrong_counts_are_no_negative_usage(self) -> None:
        """Negative numbers of tokens count as 0, so that no cost is less than nothing; the answer is complete."""
        if not self.counts:
            pytest.skip("there are no tokens to count")
        events = await self._events("miscounted")
        usage = _finish(events).usage
        assert min(usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens) >= 0
        assert usage.input_tokens == 0
        assert "".join(event.text for event in events if isinstance(event, Text)) == self.sentence

    @pytest.mark.anyio
    async def test_the_pause_that_the_vendor_asks_for_is_told(self) -> None:
        """The seconds of ``Retry-After`` are in the error, so that nobody asks earlier."""
        assert (await self._error("rate_limited")).retry_after == RETRY_AFTER

    @pytest.mark.anyio
    async def test_reasoning_is_kept_apart_from_text(self) -> None:
        """Reasoning that a vendor shows arrives as Reasoning and is not part of the text."""
        events = await self._events("reasoning")
        assert "".join(event.text for event in events if isinstance(event, Reasoning)) == REASONING_TEXT
        assert "".join(event.text for event in events if isinstance(event, Text)) == self.sentence

    @pytest.mark.anyio
    async def test_parallel_calls_arrive_complete_and_in_order(self) -> None:
        """Calls arrive in the model's order, with parsed arguments and distinct ids, directly before the Finish."""
        events = await self._events("calls")
        self._are_the_calls(events)
        assert _finish(events).reason == "tool_calls"

    @pytest.mark.anyio
    async def test_text_beside_calls_is_kept(self) -> None:
        """Text and calls of one answer both arrive, the text first (PA-F14)."""
        events = await self._events("text_and_calls")
        assert "".join(event.text for event in events if isinstance(event, Text)) == self.sentence
        self._are_the_calls(events)

    @pytest.mark.anyio
    async def test_arguments_that_are_not_json_are_passed_on(self) -> None:
        """Arguments that are not JSON are passed on as text under the key ``""``. The tools worker reports the
        error.
        """
        calls = [event.call for event in await self._events("bad_arguments") if isinstance(event, Call)]
        assert [call.name for call in calls] == ["look"]
        assert list(calls[0].arguments) == [""]

    @pytest.mark.anyio
    async def test_an_answer_stopped_by_the_limit_finishes_with_max_tokens(self) -> None:
        """The finish reason is max_tokens."""
        assert _finish(await self._events("limit")).reason == "max_tokens"

    @pytest.mark.anyio
    @pytest.mark.parametrize("name", list(FAULTS))
    async def test_every_failure_is_a_model_error_with_its_code(self, name: SituationName) -> None:
        """Every failure raises a ModelError with the specified code and the correct fault. The error does not contain
        the key.
        """
        error = await self._error(name)
        code, faults = FAULTS[name]
        assert (error.code, error.fault in faults) == (code, True), error
        shown = "".join(traceback.format_exception(error)) + repr(vars(error))
        assert KEY not in shown

    @pytest.mark.anyio
    @pytest.mark.parametrize("name", ["malformed", "cut", "quit"])
    async def test_text_before_a_failure_is_given(self, name: SituationName) -> None:
        """The text before a failure is yielded, and no Finish follows."""
        async with self._arranged(name) as situation:
            events: list[ModelEvent] = []
            with pytest.raises(ModelError):
                async for event in situation.adapter.stream(situation.request):
                    events.append(event)
        assert "".join(event.text for event in events if isinstance(event, Text)).split()
        assert not [event for event in events if isinstance(event, Finish)]

    @pytest.mark.anyio
    @pytest.mark.parametrize(
        "name", ["text", "unauthorized", "rate_limited", "server_error", "overloaded", "malformed", "cut"]
    )
    async def test_no_question_is_repeated(self, name: SituationName) -> None:
        """The adapter does not retry: one call is one request, for any answer."""
        async with self._arranged(name) as situation:
            arrived = self._or_skip(situation.arrived)
            with suppress(ModelError):
                await _all(situation)
            assert arrived() == 1

    @pytest.mark.anyio
    async def test_closing_the_iterator_closes_the_connection(self) -> None:
        """When the iterator is closed during an answer, the server sees the connection close."""
        async with self._arranged("endless") as situation:
            left = self._or_skip(situation.left)
            async with aclosing(situation.adapter.stream(situation.request)) as events:  # type: ignore[type-var]
                async for _ in events:
                    break
            await _until(left)

    @pytest.mark.anyio
    @pytest.mark.parametrize("name", ["endless", "silent"])
    async def test_cancelling_ends_at_once_and_closes_the_connection(self, name: SituationName) -> None:
        """A cancelled call ends without another error, even while the server is silent."""
        async with self._arranged(name) as situation:
            left, arrived = self._or_skip(situation.left), self._or_skip(situation.arrived)
            with anyio.fail_after(DEADLINE_SECONDS):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_all, situation)
                    await _until(lambda: arrived() == 1)
                    tasks.cancel_scope.cancel()
            await _until(left)

    @pytest.mark.anyio
    async def test_calls_at_the_same_time_do_not_mix(self) -> None:
        """Ten concurrent answers are complete and separate."""
        async with self._arranged("text") as situation:
            answers: list[str] = []

            async def ask() -> None:
                events = await _all(situation)
                answers.append("".join(event.text for event in events if isinstance(event, Text)))

            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(ask)
        assert answers == [self.sentence] * 10

    @pytest.mark.anyio
    async def test_an_unused_adapter_has_a_name_and_closes(self) -> None:
        """The name is valid in ``provider_adapter`` and ``adapter/model``. An adapter can be closed before its first
        call.
        """
        async with self._arranged("text") as situation:
            assert situation.adapter.name
            assert "/" not in situation.adapter.name

    def _are_the_calls(self, events: Sequence[ModelEvent]) -> None:
        calls = [event.call for event in events if isinstance(event, Call)]
        assert [(call.name, call.arguments) for call in calls] == list(CALLS)
        assert len({call.id for call in calls}) == len(calls)
        assert all(isinstance(event, Call) for event in events[-1 - len(calls) : -1])

    async def _events(self, name: SituationName) -> list[ModelEvent]:
        async with self._arranged(name) as situation:
            return await _all(situation)

    async def _error(self, name: SituationName) -> ModelError:
        async with self._arranged(name) as situation:
            with pytest.raises(ModelError) as caught:
                await _all(situation)
            return caught.value

    @asynccontextmanager
    async def _arranged(self, name: SituationName) -> AsyncIterator[Situation]:
        if name in self.lacks:
            pytest.skip(self.lacks[name])
        async with self.situation(name) as situation:
            try:
                yield situation
            finally:
                await situation.adapter.aclose()

    def _or_skip(self, probe: Callable[[], T] | None) -> Callable[[], T]:
        if probe is None:
            pytest.skip("there is no other side to ask")
        return probe


PROGRAMS: dict[SituationName, str] = {
    "text": f"say:{SENTENCE}",
    "reasoning": f"think:{REASONING_TEXT} ;; say:{SENTENCE}",
    "calls": 'parallel:look {"at": "sea"} listen {"to": "wind"}',
    "text_and_calls": f'say:{SENTENCE} ;; parallel:look {{"at": "sea"}} listen {{"to": "wind"}}',
    "bad_arguments": "badcall:look at the sea",
    "limit": "limit:3",
    "endless": "stall:3",
    "silent": "hang",
    "unauthorized": "status:401",
    "rate_limited": "status:429",
    "server_error": "status:500",
    "overloaded": "status:529",
    "miscounted": f"miscount ;; say:{SENTENCE}",
    "unreachable": "",
    "malformed": "malformed:3",
    "garbage": "garbage",
    "empty": "empty",
    "cut": "cut:3",
    "quit": "quit:3",
    "overflow": "overflow",
}
"""The program of each situation (see ``trunkline.testing.script``)."""


def request_for(program: str) -> ModelRequest:
    """Return a request that contains the program, offers two tools and names a model."""
    tools = tuple(
        ToolSchema(
            name=name,
            description=f"{name.capitalize()} around.",
            parameters={"type": "object", "properties": {key: {"type": "string"} for key in arguments}},
        )
        for name, arguments in CALLS
    )
    messages = (
        Message(id="msg_1", role="system", content="Be brief."),
        Message(id="msg_2", role="user", content=program),
    )
    return ModelRequest(messages=messages, tools=tools, model="scripted")


def conversation_after_calls() -> tuple[Message, ...]:
    """Return a conversation in which the model answered with text, called two tools and received their results. The
    program quotes the results.
    """
    calls = tuple(ToolCall(id=f"call_{name}", name=name, arguments=dict(args)) for name, args in CALLS)
    return (
        Message(id="msg_1", role="user", content=PROGRAMS["text_and_calls"]),
        Message(id="msg_2", role="assistant", content=SENTENCE, tool_calls=calls),
        Message(id="msg_3", role="tool", content="waves", tool_call_id="call_look", name="look"),
        Message(id="msg_4", role="tool", content="a breeze", tool_call_id="call_listen", name="listen"),
    )


class ScriptedProviderSuite(AdapterSuite):
    """The contract of adapters for HTTP servers that ``ScriptedProvider`` can replace."""

    @abstractmethod
    def adapter(self, provider: ScriptedProvider, key: str) -> ModelAdapter:
        """Return an adapter for this server that sends this key, if its protocol has keys."""

    @asynccontextmanager
    async def situation(self, name: SituationName) -> AsyncIterator[Situation]:
        """Create a situation by a program."""
        async with ScriptedProvider().serving() as provider:
            with _nobody() as port:
                other = ScriptedProvider(port=port) if name == "unreachable" else provider
                yield Situation(
                    adapter=self.adapter(other, KEY),
                    request=request_for(PROGRAMS[name]),
                    arrived=lambda: len(provider.answer_requests),
                    left=lambda: any(request.outcome == "abandoned" for request in provider.answer_requests),
                )


def _finish(events: Sequence[ModelEvent]) -> Finish:
    last = events[-1]
    assert isinstance(last, Finish)
    return last


async def _all(situation: Situation) -> list[ModelEvent]:
    return [event async for event in situation.adapter.stream(situation.request)]


async def _until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110 - the condition is on the other side of a connection
            await anyio.sleep(0.005)


@contextmanager
def _nobody() -> Iterator[int]:
    """Reserve a port of this machine within the context. Nothing listens on it, and no other process can."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])
