"""For any history of a conversation, the request sent is one that OpenAI accepts, in both of its protocols.

The state machine itself drives turns through events in any order: calls of the client's tools and ours, mixed, denied,
cancelled, taken over, steered; results late, twice, of no call; transcripts cut, forked and imported.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.contracts.conversations.messages import Message, ToolCall, utc_now
from trunkline.contracts.models.adapter import ModelRequest
from trunkline.contracts.tools.messages import ToolOutcome, ToolSchema
from trunkline.contracts.turns.journal_messages import (
    ApprovalAsked,
    ApprovalRecorded,
    CancelRecorded,
    JournalEntry,
    ModelCallFailed,
    ModelCallFinished,
    SteerRecorded,
    ToolFinished,
    TurnFinished,
    TurnResumed,
    TurnStarted,
)
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.errors import ErrorCode
from trunkline.testing.vendor_apis.openai_rules import find_violations
from trunkline.workers.monitor.transcript_repair import UNANSWERED, repair_transcript
from trunkline.workers.monitor.turn import CallModel, Phase, Turn
from trunkline.workers.monitor.turn_messages import append_request, new_messages
from trunkline.workers.monitor.turn_messages import model_messages as reported
from trunkline_openai.chat_completions import ChatCompletions
from trunkline_openai.responses import Responses
from trunkline_openai.settings import OpenAISettings

CLIENTS = ("weather", "clock")
OURS = ("read_file", "no.such tool", "")
CONTEXT = (
    Message(id="ctx_s", role="system", content="You are an agent."),
    Message(id="ctx_u", role="user", content="It is Monday."),
)
IDS = st.sampled_from(["call_0", "call_1", "call_2", "", "call_" + "9" * 60])
ROLES = st.sampled_from(["system", "user", "assistant", "tool"])

CALLS = st.builds(
    ToolCall,
    id=IDS,
    name=st.sampled_from([*CLIENTS, *OURS]),
    arguments=st.sampled_from([{}, {"town": "Ulm"}, {"": '{"town": '}]),
)


@st.composite
def anything(draw: st.DrawFn) -> tuple[Message, ...]:
    """Messages in any order whatsoever, as an import or a hand may have left them."""
    messages = []
    for number in range(draw(st.integers(1, 12))):
        role = draw(ROLES)
        calls = draw(st.lists(CALLS, max_size=3)) if role == "assistant" else []
        content = draw(st.sampled_from(["", "words"])) if role == "assistant" else f"{role} {number}"
        answers = draw(IDS) if role == "tool" else None
        messages.append(
            Message(
                id=f"msg_{number}",
                role=role,  # type: ignore[arg-type]
                content=content,
                tool_calls=tuple(calls),
                tool_call_id=answers,
            )
        )
    return (*messages, Message(id="msg_last", role="user", content="and now?"))


def check(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Check that the request keeps the vendor's rules, contains all messages in their order, and is not repaired
    twice."""
    repaired = repair_transcript(messages)
    request = ModelRequest(messages=repaired)
    for path, protocol in (("/chat/completions", ChatCompletions), ("/responses", Responses)):
        body: dict[str, Any] = protocol.body(request, "m", OpenAISettings())
        assert find_violations(path, body) == ()
    assert repair_transcript(repaired) == repaired
    spoken = [m.content for m in messages if m.role != "tool" and (m.content or m.tool_calls)]
    assert [m.content for m in repaired if m.role != "tool"] == spoken
    invented = [m for m in repaired if m.role == "tool" and m.content == UNANSWERED]
    real = [m.content for m in messages if m.role == "tool"]
    kept = [m.content for m in repaired if m.role == "tool" and m not in invented]
    assert all(kept.count(text) <= real.count(text) for text in kept)
    return repaired


@given(anything())
def test_any_messages_become_a_valid_transcript(messages: tuple[Message, ...]) -> None:
    check(messages)


def test_a_valid_transcript_is_unchanged() -> None:
    """To the very objects: the beginning that a vendor has cached is not touched."""
    call, other = ToolCall(id="c1", name="weather"), ToolCall(id="c2", name="read_file")
    messages = (
        Message(id="1", role="user", content="hi"),
        Message(id="2", role="assistant", content="", tool_calls=(call, other)),
        Message(id="3", role="tool", content="sun", tool_call_id="c1"),
        Message(id="4", role="tool", content="text", tool_call_id="c2"),
        Message(id="5", role="assistant", content="Sun."),
    )
    assert all(kept is message for kept, message in zip(repair_transcript(messages), messages, strict=True))


def test_calls_without_results_are_marked_and_late_ones_matched() -> None:
    """The model is told of the missing result; a late result is moved to its call."""
    call, other = ToolCall(id="c1", name="weather"), ToolCall(id="c2", name="clock")
    asked = Message(id="2", role="assistant", content="", tool_calls=(call, other))
    messages = (
        Message(id="1", role="user", content="hi"),
        asked,
        Message(id="3", role="user", content="never mind"),
        Message(id="4", role="tool", content="noon", tool_call_id="c2"),
        Message(id="5", role="tool", content="noon again", tool_call_id="c2"),
        Message(id="6", role="tool", content="whose?", tool_call_id="c9"),
    )
    reported = [(message.role, message.content) for message in repair_transcript(messages)]
    assert reported == [
        ("user", "hi"), ("assistant", ""), ("tool", UNANSWERED), ("tool", "noon"), ("user", "never mind"),
    ]  # fmt: skip


class Life:
    """A conversation that lives through turns, as hypothesis draws them."""

    def __init__(self, draw: st.DataObject) -> None:
        self._draw = draw
        self._turns = 0
        self.history: tuple[Message, ...] = ()

    def pick(self, *choices: Any) -> Any:
        return self._draw.draw(st.sampled_from(choices))

    def live(self) -> None:
        for _ in range(self._draw.draw(st.integers(1, 4))):
            self._turn()
            self._afterwards()

    def _turn(self) -> None:
        self._turns += 1
        turn, request = Turn(), self._request()
        asked = self._take(turn, TurnStarted(request=request, model="m", context=CONTEXT))
        for _ in range(30):
            if turn.phase in (Phase.CLOSING, Phase.DONE):
                break
            if asked:
                check(reported(CONTEXT, request.history or self.history, new_messages(turn)))
            asked = self._take(turn, self._next(turn))
        if turn.phase is not Phase.CLOSING:
            self._take(turn, CancelRecorded(by="owner", mode="now"))
        stored = append_request(turn).messages
        known = {message.id for message in self.history}
        self.history += tuple(message for message in stored if message.id not in known)
        self._take(turn, TurnFinished(reason="stop"))

    def _take(self, turn: Turn, entry: JournalEntry) -> bool:
        _, commands = turn.advance(entry)
        return any(isinstance(command, CallModel) for command in commands)

    def _request(self) -> TurnRequested:
        """A person's words, or a client's results for its calls: all, some, twice, or of no call."""
        id = f"turn_{self._turns}"
        calls = [call.id for m in self.history[-8:] for call in m.tool_calls if call.name in CLIENTS]
        brought = [
            Message(id=f"{id}_{n}", role="tool", content=f"brought {n}", tool_call_id=call, turn=id)
            for n, call in enumerate([*calls, *calls[:1], "call_of_nobody"])
            if self.pick(True, False)
        ]
        words = Message(id=f"{id}_say", role="user", content=f"words {id}", turn=id)
        said = [*brought, words] if not brought or self.pick(True, False) else brought
        return TurnRequested(
            turn=id, block="main", conversation="conv", message=said[-1], preceding=tuple(said[:-1]),
            actor="owner", channel="http",
            client_tools=tuple(ToolSchema(name=name, description="") for name in CLIENTS),
        )  # fmt: skip

    def _next(self, turn: Turn) -> JournalEntry:
        """Anything that can happen in this phase."""
        steered = SteerRecorded(
            message=Message(id=f"s{len(turn.entries)}_{self._turns}", role="user", content="also")
        )
        cancelled = CancelRecorded(by="owner", mode=self.pick("now", "after_step"), partial="half")
        always = (steered, cancelled, TurnResumed())
        waiting = [action for action in turn.actions if action.waiting]
        open_ = [action for action in turn.actions if action.open and not action.waiting]
        if turn.phase is Phase.THINKING:
            return self.pick(self._answer(turn), self._answer(turn), self._failed(turn), *always)  # type: ignore[no-any-return]
        happens: list[JournalEntry] = [TurnResumed(), cancelled]
        happens += [
            ApprovalRecorded(call_id=action.call.id, allow=self.pick(True, False), by="owner")
            for action in waiting
        ]
        for action in open_:
            ok = ToolOutcome(call=action.key, status="ok", output=f"of {action.call.name}")
            happens += [
                ToolFinished(call_id=action.call.id, outcome=ok),
                ApprovalAsked(call_id=action.call.id, call_hash="h", question="May it?", asked_at=utc_now()),
            ]
        return self.pick(*happens, *((steered,) if turn.phase is Phase.ACTING else ()))  # type: ignore[no-any-return]

    def _answer(self, turn: Turn) -> ModelCallFinished:
        names = self._draw.draw(st.lists(st.sampled_from([*CLIENTS, *OURS]), max_size=3))
        used = {action.call.id for step in turn.steps for action in step.actions}
        ids = [id for id in (f"call_{n}" for n in range(99)) if id not in used]
        calls = tuple(ToolCall(id=id, name=name) for id, name in zip(ids, names, strict=False))
        return ModelCallFinished(step=turn.step, text=self.pick("", "text"), tool_calls=calls)

    def _failed(self, turn: Turn) -> ModelCallFailed:
        return ModelCallFailed(step=turn.step, code=ErrorCode.PROVIDER_ERROR, partial=self.pick("", "ha"))

    def _afterwards(self) -> None:
        """The transcript is cut at its beginning or end, or sent back by a client that had seen no tools of ours."""
        size = len(self.history)
        match self.pick("kept", "kept", "truncated", "forked", "imported"):
            case "truncated":
                self.history = self.history[self._draw.draw(st.integers(0, size)) :]
            case "forked":
                self.history = self.history[: self._draw.draw(st.integers(0, size))]
            case "imported":
                self.history = tuple(message for message in self.history if self.pick(True, True, False))


@given(st.data())
def test_any_history_yields_a_valid_transcript(data: st.DataObject) -> None:
    """Every model call of every turn, and one more at the end."""
    life = Life(data)
    life.live()
    check(reported(CONTEXT, life.history, (Message(id="end", role="user", content="and now?"),)))


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"messages": [{"role": "assistant", "content": None}]}, "messages[0].content"),
        ({"messages": [{"role": "assistant", "content": "x", "tool_calls": []}]}, "messages[0].tool_calls"),
        ({"messages": [{"role": "tool", "tool_call_id": "c", "content": "x"}]}, "messages[0].tool_call_id"),
        ({"messages": [{"role": "user", "content": "x"}], "tools": []}, "tools"),
    ],
)  # fmt: skip
def test_the_rules_check_the_request_sent_to_the_vendor(body: dict[str, Any], param: str) -> None:
    """Each field that the vendor would name is named."""
    assert [fault.param for fault in find_violations("/v1/chat/completions", body)][:1] == [param]


CALLED = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ANSWERED = {"role": "tool", "tool_call_id": "c1", "content": "x"}


@pytest.mark.parametrize(
    ("calls", "after", "param"),
    [
        ([CALLED], [], "messages[1]"),
        ([CALLED], [{"role": "user", "content": "x"}, ANSWERED], "messages[1]"),
        ([CALLED], [ANSWERED, ANSWERED], "messages[2].tool_call_id"),
        ([CALLED, CALLED], [ANSWERED], "messages[0].tool_calls[1].id"),
        ([{**CALLED, "id": "x" * 41}], [{**ANSWERED, "tool_call_id": "x" * 41}], "messages[0].tool_calls[0].id"),
        ([{**CALLED, "function": {"name": "a b", "arguments": "{}"}}], [ANSWERED], "messages[0].tool_calls[0].name"),
        ([{**CALLED, "function": {"name": "a", "arguments": "{"}}], [ANSWERED], "messages[0].tool_calls[0].arguments"),
    ],
)  # fmt: skip
def test_the_rules_of_calls(calls: list[Any], after: list[Any], param: str) -> None:
    """Answered once, directly after, by an id of its own, with JSON: in Chat Completions and in Responses."""
    asked = {"role": "assistant", "content": None, "tool_calls": calls}
    assert param in [f.param for f in find_violations("/chat/completions", {"messages": [asked, *after]})]
    assert (
        find_violations("/chat/completions", {"messages": [{**asked, "tool_calls": [CALLED]}, ANSWERED]})
        == ()
    )
    items = [{"type": "function_call", "call_id": c["id"], **c["function"]} for c in calls]
    outputs = [
        {"type": "function_call_output", "call_id": m["tool_call_id"], "output": "x"} if m["role"] == "tool" else m
        for m in after
    ]  # fmt: skip
    longer = "x" * 41 in str(calls)  # Responses takes up to 64
    assert bool(find_violations("/responses", {"input": [*items, *outputs]})) is not longer
