"""The turn's state machine, driven without any I/O."""

import random
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.contracts.conversations.messages import Message, ToolCall, Usage
from trunkline.contracts.tools.messages import ToolOutcome, ToolSchema
from trunkline.contracts.turns.journal_messages import (
    ApprovalAsked,
    ApprovalRecorded,
    CancelRecorded,
    JournalEntry,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallPlanned,
    SteerRecorded,
    ToolFinished,
    ToolPlanned,
    TurnFinished,
    TurnParked,
    TurnPreempted,
    TurnResumed,
    TurnStarted,
)
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.errors import ErrorCode
from trunkline.workers.monitor.turn import (
    TRANSITIONS,
    CallModel,
    Command,
    ParkTurn,
    Phase,
    RunToolCall,
    StoreTurn,
    Turn,
    TurnProtocolError,
)
from trunkline.workers.monitor.turn_messages import UNDECIDED, UNFINISHED, last_answer_id, new_messages


def requested(**changes: object) -> TurnRequested:
    message = Message(id="msg_u", role="user", content="hello")
    fields: dict[str, object] = {
        "turn": "turn_1", "block": "main", "conversation": "conv_1", "message": message,
        "actor": "owner", "channel": "test",
    }  # fmt: skip
    return TurnRequested(**(fields | changes))  # type: ignore[arg-type]


def started(turn: Turn, **changes: object) -> tuple[Command, ...]:
    return turn.advance(TurnStarted(request=requested(**changes), model="scripted"))[1]


def calls(*names: str) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(id=f"c{n}", name=name) for n, name in enumerate(names))


def result(command: RunToolCall, text: str = "ok") -> ToolFinished:
    return ToolFinished(
        call_id=command.call.id, outcome=ToolOutcome(call=command.key, status="ok", output=text)
    )


def test_a_message_is_answered_in_three_records() -> None:
    """Start and plan go together, then the answer, then the end: three writes for a plain turn."""
    turn = Turn()
    entries, commands = turn.advance(TurnStarted(request=requested(), model="m"))
    assert [type(e) for e in entries] == [TurnStarted, ModelCallPlanned]
    assert commands == (CallModel(0),)
    entries, commands = turn.advance(ModelCallFinished(step=0, text="hi", usage=Usage(input_tokens=3)))
    assert [type(e) for e in entries] == [ModelCallFinished] and commands == (StoreTurn("stop"),)
    messages = new_messages(turn)
    assert [(m.role, m.content) for m in messages] == [("user", "hello"), ("assistant", "hi")]
    entries, commands = turn.advance(TurnFinished(reason="stop", message_id=last_answer_id(messages)))
    assert turn.phase is Phase.DONE and commands == ()


def test_parallel_calls_run_together_and_return_in_call_order() -> None:
    """All calls of an answer are commanded at once; whichever ends first, the model gets them in call order."""
    turn = Turn()
    started(turn)
    entries, commands = turn.advance(
        ModelCallFinished(step=0, text="let me look", tool_calls=calls("a", "b", "c"))
    )
    assert [type(e) for e in entries] == [ModelCallFinished, ToolPlanned, ToolPlanned, ToolPlanned]
    runs = [c for c in commands if isinstance(c, RunToolCall)]
    assert [c.call.name for c in runs] == ["a", "b", "c"] and len({c.key for c in runs}) == 3
    assert turn.advance(result(runs[2], "C"))[1] == ()
    assert turn.advance(result(runs[0], "A"))[1] == ()
    assert turn.advance(result(runs[1], "B"))[1] == (CallModel(1),)
    assistant, *results = new_messages(turn)[1:]
    assert assistant.content == "let me look" and [c.name for c in assistant.tool_calls] == ["a", "b", "c"]
    assert [m.content for m in results] == ["A", "B", "C"]


def test_there_is_no_iteration_cap() -> None:
    """Two hundred rounds of tools are two hundred rounds (PA-F14)."""
    turn = Turn()
    started(turn)
    for step in range(200):
        _, (run,) = turn.advance(
            ModelCallFinished(step=step, tool_calls=(ToolCall(id=f"c{step}", name="a"),))
        )
        assert isinstance(run, RunToolCall)
        assert turn.advance(result(run))[1] == (CallModel(step + 1),)


def test_a_steered_message_is_answered_in_the_running_turn() -> None:
    """The answer under way cannot have known it, so there is another step."""
    turn = Turn()
    started(turn)
    extra = Message(id="msg_s", role="user", content="and this")
    assert turn.advance(SteerRecorded(message=extra))[1] == ()
    assert turn.advance(ModelCallFinished(step=0, text="one"))[1] == (CallModel(1),)
    assert turn.advance(ModelCallFinished(step=1, text="two"))[1] == (StoreTurn("stop"),)
    assert [m.content for m in new_messages(turn)] == ["hello", "one", "and this", "two"]
    assert turn.has_message("msg_s") and not turn.has_message("msg_x")


def test_a_cancel_keeps_the_partial_text_and_marks_it() -> None:
    """The shown text is stored, marked as partial."""
    turn = Turn()
    started(turn)
    assert turn.advance(CancelRecorded(by="owner", mode="now", partial="half an"))[1] == (
        StoreTurn("cancelled"),
    )
    answer = new_messages(turn)[-1]
    assert answer.content == "half an" and answer.partial


def test_a_cancel_among_tools_gives_every_call_a_result() -> None:
    """A finished call keeps its result; one under way is reported as not known."""
    turn = Turn()
    started(turn)
    _, runs = turn.advance(ModelCallFinished(step=0, tool_calls=calls("a", "b")))
    turn.advance(result(runs[0], "A"))  # type: ignore[arg-type]
    turn.advance(CancelRecorded(by="owner", mode="now"))
    late, commands = turn.advance(result(runs[1], "too late"))  # type: ignore[arg-type]
    assert (late, commands) == ((), ())
    assert [m.content for m in new_messages(turn, closing=True)][2:] == ["A", UNFINISHED]


def test_stopping_after_the_step_lets_the_tools_finish() -> None:
    """Mode after_step ends the turn once the running step is complete, without asking the model again."""
    turn = Turn()
    started(turn)
    _, runs = turn.advance(ModelCallFinished(step=0, tool_calls=calls("a")))
    assert turn.advance(CancelRecorded(by="owner", mode="after_step"))[1] == ()
    assert turn.advance(result(runs[0]))[1] == (StoreTurn("stopped"),)  # type: ignore[arg-type]


@pytest.mark.parametrize("cancelled_first", [True, False])
def test_a_stopping_turn_asks_no_approval(cancelled_first: bool) -> None:
    """With nothing but a question left in its last step it ends, instead of waiting for an answer it has no use for."""
    turn = Turn()
    started(turn)
    _, runs = turn.advance(ModelCallFinished(step=0, tool_calls=calls("safe", "risky")))
    asked = ApprovalAsked(call_id="c1", call_hash="h", question="Run risky?")
    stop = CancelRecorded(by="owner", mode="after_step")
    for entry in (stop, asked) if cancelled_first else (asked, stop):
        assert turn.advance(entry)[1] == ()
    assert turn.advance(result(runs[0]))[1] == (StoreTurn("stopped"),)  # type: ignore[arg-type]
    assert [m.content for m in new_messages(turn, closing=True)][2:] == ["ok", UNDECIDED]


def test_a_stopping_turn_accepts_no_more_messages() -> None:
    """It would not answer them; they become turns of their own."""
    turn = Turn()
    started(turn)
    turn.advance(CancelRecorded(by="owner", mode="after_step"))
    late = SteerRecorded(message=Message(id="msg_s", role="user", content="and this"))
    assert turn.advance(late) == ((), ()) and not turn.has_message("msg_s")
    assert turn.advance(ModelCallFinished(step=0, text="one"))[1] == (StoreTurn("stop"),)


def test_an_approval_parks_the_turn_once_nothing_else_runs() -> None:
    """Other calls of the same answer continue; then the worker is released; a decision runs exactly that call."""
    turn = Turn()
    started(turn)
    _, runs = turn.advance(ModelCallFinished(step=0, tool_calls=calls("safe", "risky")))
    asked = ApprovalAsked(call_id="c1", call_hash="h", question="Run risky?")
    assert turn.advance(asked)[1] == ()
    entries, commands = turn.advance(result(runs[0]))  # type: ignore[arg-type]
    assert isinstance(entries[-1], TurnParked) and commands == (ParkTurn(),) and turn.phase is Phase.PARKED
    entries, commands = turn.advance(TurnResumed(), ApprovalRecorded(call_id="c1", allow=True, by="owner"))
    assert list(commands) == [replace(runs[1], approved="h")]  # type: ignore[type-var]
    turn.advance(ApprovalRecorded(call_id="c1", allow=False, by="somebody later"))
    assert turn.actions[1].approved == "h"
    assert turn.advance(result(runs[1]))[1] == (CallModel(1),)  # type: ignore[arg-type]


def test_a_denial_is_a_result_for_the_model() -> None:
    """The model is told who denied, and continues."""
    turn = Turn()
    started(turn)
    turn.advance(ModelCallFinished(step=0, tool_calls=calls("risky")))
    turn.advance(ApprovalAsked(call_id="c0", call_hash="h", question="?"))
    assert turn.advance(ApprovalRecorded(call_id="c0", allow=False, by="owner"))[1] == (CallModel(1),)
    assert "denied by the owner" in new_messages(turn)[-1].content


def test_a_call_to_a_clients_tool_ends_the_turn() -> None:
    """Our own calls are run first; then the client has to run its own."""
    turn = Turn()
    started(turn, client_tools=(ToolSchema(name="theirs"),))
    _, commands = turn.advance(ModelCallFinished(step=0, tool_calls=calls("ours", "theirs")))
    assert [c.call.name for c in commands] == ["ours"]  # type: ignore[union-attr]
    assert turn.advance(result(commands[0]))[1] == (StoreTurn("tool_calls"),)  # type: ignore[arg-type]
    assert len([m for m in new_messages(turn, closing=True) if m.role == "tool"]) == 1


def test_a_failed_model_call_ends_the_turn_with_its_code() -> None:
    """The code goes to the end, the partial text is kept."""
    turn = Turn()
    started(turn)
    failed = ModelCallFailed(step=0, code=ErrorCode.CONTEXT_OVERFLOW, partial="so far")
    assert turn.advance(failed)[1] == (StoreTurn("error", ErrorCode.CONTEXT_OVERFLOW),)
    assert new_messages(turn)[-1].partial


def test_an_entry_without_a_place_is_refused_on_replay() -> None:
    """A journal that makes no sense is not guessed at."""
    with pytest.raises(TurnProtocolError, match="Finished in phase new"):
        Turn().apply(TurnFinished(reason="stop"))


def test_every_phase_but_the_last_takes_a_new_owner() -> None:
    """A crash is possible anywhere, so is a takeover."""
    assert all(
        TurnResumed in row for phase, row in TRANSITIONS.items() if phase not in (Phase.NEW, Phase.DONE)
    )
    assert TRANSITIONS[Phase.DONE] == {}


class CommandRunner:
    """Executes commands with random results, counting its actions."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.finished_calls: list[str] = []
        self.steps = 0

    def does(self, command: Command, turn: Turn) -> JournalEntry:
        match command:
            case CallModel(step=step):
                return self._answer(step)
            case RunToolCall(call=call, key=key):
                if self.chance.random() < 0.2 and command.approved is None:
                    return ApprovalAsked(call_id=call.id, call_hash=f"hash-{key}", question="?")
                self.finished_calls.append(key)
                return result(command)
            case StoreTurn(reason=reason, code=code):
                messages = new_messages(turn, closing=True)
                return TurnFinished(reason=reason, code=code, message_id=last_answer_id(messages))
            case ParkTurn():
                waiting = next(a for a in turn.actions if a.waiting)
                return ApprovalRecorded(call_id=waiting.call.id, allow=self.chance.random() < 0.5, by="owner")

    def _answer(self, step: int) -> JournalEntry:
        self.steps += 1
        if self.chance.random() < 0.1:
            return ModelCallFailed(step=step, code=ErrorCode.PROVIDER_ERROR, partial="part")
        count = self.chance.choice([0, 0, 1, 2, 3]) if self.steps < 8 else 0
        made = tuple(ToolCall(id=f"s{step}c{n}", name="tool") for n in range(count))
        return ModelCallFinished(step=step, text=f"text {step}", tool_calls=made)


@given(
    seed=st.integers(),
    crashes=st.lists(st.integers(0, 30), max_size=6),
    preempting=st.sampled_from((0.0, 0.1, 0.4)),
)
def test_a_crash_anywhere_loses_nothing_and_repeats_no_finished_call(
    seed: int, crashes: list[int], preempting: float
) -> None:
    """Replaying the journal after a crash or a preemption at any point leads to the same kind of end: every call has
    one result, no call with a recorded result is run again, ids are unique, and the turn is done."""
    runner = CommandRunner(random.Random(seed))
    journal: list[JournalEntry] = []
    turn = Turn()
    entries, todo = turn.advance(TurnStarted(request=requested(), model="m"))
    journal += entries
    pending = list(todo)
    for moment in range(400):
        if turn.phase is Phase.DONE:
            break
        if moment in crashes or turn.phase is Phase.PREEMPTED:
            recorded = {a.key for s in turn.steps for a in s.actions if a.outcome is not None}
            turn = Turn()
            for entry in journal:
                turn.apply(entry)
            was_parked = turn.phase is Phase.PARKED
            entries, todo = turn.advance(TurnResumed())
            journal += entries
            pending = [ParkTurn()] if was_parked else list(todo)
            assert not recorded & {c.key for c in pending if isinstance(c, RunToolCall)}
        command = pending.pop(runner.chance.randrange(len(pending)))
        happened = [runner.does(command, turn)]
        if isinstance(command, ParkTurn):
            happened.insert(0, TurnResumed())
        if runner.chance.random() < preempting:
            happened.insert(runner.chance.randrange(len(happened) + 1), TurnPreempted())
        if runner.chance.random() < 0.1:
            happened.append(SteerRecorded(message=Message(id=f"msg_{moment}", role="user", content="more")))
        entries, todo = turn.advance(*happened)
        journal += entries
        pending += todo
    assert turn.phase is Phase.DONE
    messages = new_messages(turn, closing=True)
    assert len({m.id for m in messages}) == len(messages)
    asked = [c.id for m in messages for c in m.tool_calls]
    assert sorted(asked) == sorted(m.tool_call_id for m in messages if m.role == "tool" and m.tool_call_id)
    steered = [e.message.id for e in journal if isinstance(e, SteerRecorded)]
    assert [m.id for m in messages if m.role == "user"] == ["msg_u", *steered]


@pytest.mark.parametrize(
    "record",
    [
        b'{"type":"approval_asked","call_id":"c1","call_hash":"h","question":"May it?"}',
        b'{"type":"approval_recorded","call_id":"c1","allow":true,"by":"owner"}',
    ],
)
def test_approval_records_without_a_deadline_keep_their_bytes(record: bytes) -> None:
    """A journal of an earlier version is read, and written again just so."""
    entry = msgspec.json.decode(record, type=JournalEntry)
    assert msgspec.json.encode(entry) == record
    assert "detail" not in msgspec.to_builtins(ToolOutcome(call="k", status="ok"))
