"""The guards around a call: their order, and that they fail closed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from trunkline import ToolError, ToolOutcome
from trunkline.api.tool import Proceed, ToolInvocation, ToolSpec
from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.tools.tool import STAGES, Stage
from trunkline.testing.contexts import tool_context
from trunkline.workers.tools.dispatch import Dispatch, Guard, call_hash

pytestmark = pytest.mark.anyio

SPEC = ToolSpec(name="act", description="Acts.", effect="write", parameters={"type": "object"})


class Noting:
    """Notes that it was there, and lets the call pass."""

    def __init__(self, stage: Stage, notes: list[str]) -> None:
        self.stage: Stage = stage
        self.notes = notes

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        self.notes.append(self.stage)
        return await proceed(invocation)


class Doing:
    """Follows the test."""

    def __init__(self, stage: Stage, act: Any) -> None:
        self.stage: Stage = stage
        self.act = act

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        return await self.act(invocation, proceed)


class Tool:
    """The last step: counts how often it was reached, and with what."""

    def __init__(self) -> None:
        self.reached: list[dict[str, Any]] = []

    async def __call__(self, invocation: ToolInvocation) -> ToolOutcome:
        self.reached.append(invocation.arguments)
        return ToolOutcome(call=invocation.context.call, status="ok", output="done")


def invocation(approved: str | None = None, **arguments: Any) -> ToolInvocation:
    return ToolInvocation(
        spec=SPEC,
        arguments=arguments,
        context=tool_context(Path()),
        call_hash=call_hash(SPEC, arguments),
        approved=approved,
    )


async def dispatched(
    *acts: tuple[Stage, Any], given: ToolInvocation | None = None
) -> tuple[ToolOutcome, Tool]:
    tool = Tool()
    guards = [Guard("acme-guards", Doing(stage, act)) for stage, act in acts]
    return await Dispatch(guards)(given or invocation(), tool), tool


async def test_the_stages_run_in_the_fixed_order() -> None:
    """The order is schema, policy, path, gate, execute, for any order of the plugins; within a stage the given
    order."""
    notes: list[str] = []
    tool = Tool()
    guards = [Guard("p", Noting(stage, notes)) for stage in (*reversed(STAGES), "gate")]
    assert (await Dispatch(guards)(invocation(), tool)).output == "done"
    assert notes == ["schema", "policy", "path", "gate", "gate", "execute"]


async def test_a_refusal_is_an_error_for_the_model_and_nothing_runs() -> None:
    """A guard's ToolError becomes the outcome, in its own words."""

    async def refuse(call: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        raise ToolError("Not on a Sunday.")

    outcome, tool = await dispatched(("policy", refuse))
    assert (outcome.status, outcome.output) == ("error", "Not on a Sunday.")
    assert not tool.reached


@pytest.mark.parametrize(
    "error", [RuntimeError("secret"), SystemExit(1), KeyboardInterrupt(), anyio.EndOfStream()]
)
async def test_a_guard_that_fails_refuses(error: BaseException) -> None:
    """Any other exception refuses too, with a fixed sentence and a reference; its text stays in the log."""

    async def fail(call: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        raise error

    outcome, tool = await dispatched(("gate", fail))
    assert outcome.status == "error"
    assert outcome.output.startswith("act was not run, because a check at the stage gate failed. The log has")
    assert "secret" not in outcome.output
    assert not tool.reached


async def test_a_guard_that_returns_nonsense_refuses() -> None:
    """A result that is no outcome is a failed check."""

    async def nonsense(call: ToolInvocation, proceed: Proceed) -> Any:
        return True

    outcome, tool = await dispatched(("policy", nonsense))
    assert "a check at the stage policy failed" in outcome.output
    assert not tool.reached


async def test_a_guard_failure_after_the_tool_reports_that_it_ran() -> None:
    """The model is never told that nothing happened after an effect."""

    async def fail_later(call: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        await proceed(call)
        raise RuntimeError

    outcome, tool = await dispatched(("execute", fail_later))
    assert outcome.output.startswith("act ran, but its result was withheld")
    assert len(tool.reached) == 1


async def test_a_question_after_the_call_is_a_failed_check() -> None:
    """A completed call cannot be asked about."""

    async def ask_later(call: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        await proceed(call)
        return ToolOutcome(call="", status="approval", question="May it?")

    outcome, tool = await dispatched(("gate", ask_later))
    assert outcome.output.startswith("act ran, but its result was withheld")
    assert len(tool.reached) == 1


async def test_a_guard_cannot_run_a_writing_tool_twice() -> None:
    """To proceed twice with what must not run twice is a failed check."""

    async def twice(call: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        await proceed(call)
        return await proceed(call)

    outcome, tool = await dispatched(("execute", twice))
    assert "withheld" in outcome.output
    assert len(tool.reached) == 1


@pytest.mark.parametrize("stage", ["schema", "policy"])
async def test_early_stages_change_arguments_and_later_ones_get_the_hash(stage: Stage) -> None:
    """The gate decides about the arguments that run."""
    seen: list[str] = []

    async def change(call: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        return await proceed(replace(call, arguments={"b": 2}))

    async def look(call: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        seen.append(call.call_hash)
        return await proceed(call)

    _, tool = await dispatched((stage, change), ("gate", look), given=invocation(a=1))
    assert tool.reached == [{"b": 2}]
    assert seen == [call_hash(SPEC, {"b": 2})]


@pytest.mark.parametrize("stage", ["path", "gate", "execute"])
async def test_later_stages_may_not_change_the_arguments(stage: Stage) -> None:
    """After the policy nothing may be slipped in."""

    async def change(call: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        return await proceed(replace(call, arguments={"path": ".env"}))

    async def change_in_place(call: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        call.arguments["path"] = ".env"
        return await proceed(call)

    for act in (change, change_in_place):
        outcome, tool = await dispatched((stage, act), given=invocation(path="a"))
        assert "failed" in outcome.output
        assert not tool.reached


async def test_a_gate_asks_and_an_approval_of_this_very_call_passes() -> None:
    """The approval is bound to tool and arguments: the hash comes with the question, and the hash lets it pass."""

    async def ask(call: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        return ToolOutcome(call="wrong", status="approval", question="May it?", call_hash="wrong")

    outcome, tool = await dispatched(("gate", ask), given=invocation(a=1))
    assert (outcome.status, outcome.question, outcome.call) == ("approval", "May it?", "call_test")
    assert not tool.reached
    approved = invocation(approved=outcome.call_hash, a=1)
    outcome, tool = await dispatched(("gate", ask), given=approved)
    assert outcome.status == "ok"
    other = invocation(approved=outcome.call_hash, a=2)
    outcome, tool = await dispatched(("gate", ask), given=other)
    assert outcome.status == "approval"
    assert not tool.reached


def asking(question: str, **given: Any) -> Any:
    """A gate that asks this."""

    async def ask(call: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        return ToolOutcome(call="", status="approval", question=question, **given)

    return ask


async def test_several_gates_ask_one_question_and_one_approval_answers_all() -> None:
    """The person sees what every gate wants to know, before they decide. A yes for longer is not offered then: it would
    silence one of them alone."""
    detail = ApprovalDetail(text="b: 1", shape="s", covers="act with b=1")
    gates = (
        ("gate", asking("May it?", detail=detail)),
        ("gate", asking("Really?")),
        ("gate", asking("May it?")),
    )
    outcome, tool = await dispatched(*gates, given=invocation(b=1))
    assert (outcome.status, outcome.question) == ("approval", "May it?\nReally?")
    assert outcome.detail == ApprovalDetail(text="b: 1")
    assert outcome.call_hash == call_hash(SPEC, {"b": 1}) and not tool.reached
    outcome, tool = await dispatched(*gates, given=invocation(approved=outcome.call_hash, b=1))
    assert outcome.status == "ok" and len(tool.reached) == 1


async def test_a_person_is_not_asked_about_what_a_later_gate_refuses() -> None:
    """Denials win: the refusal is the outcome, and what stands at the execute stage is not reached by a question."""
    reached: list[str] = []

    async def refuse(call: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        raise ToolError("Never.")

    outcome, tool = await dispatched(("gate", asking("May it?")), ("gate", refuse))
    assert (outcome.status, outcome.output) == ("error", "Never.")
    outcome, tool = await dispatched(("gate", asking("May it?")), ("execute", Noting("execute", reached)))
    assert outcome.status == "approval" and not reached and not tool.reached


async def test_a_gate_may_add_a_preview_to_later_gates_and_nothing_else() -> None:
    """The built-in gatekeeper does so for the gates of plugins."""
    shown = ApprovalDetail(text="what would be done")

    async def add(call: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        asked = await proceed(call)
        return msgspec.structs.replace(
            asked, detail=shown, question="Nothing to see here.", call_hash="other"
        )

    outcome, tool = await dispatched(("gate", add), ("gate", asking("May it?")), given=invocation(b=1))
    assert (outcome.question, outcome.detail) == ("May it?", shown)
    assert outcome.call_hash == call_hash(SPEC, {"b": 1}) and not tool.reached


async def test_a_cancel_is_not_a_failed_check() -> None:
    """A cancelled call ends as cancelled, without an incident."""

    async def wait(call: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        return await proceed(call)

    async def hang(invocation: ToolInvocation) -> ToolOutcome:
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.move_on_after(0.01) as scope:
        await Dispatch([Guard("p", Doing("gate", wait))])(invocation(), hang)
    assert scope.cancelled_caught


def test_a_guard_of_an_unknown_stage_is_refused_when_loaded() -> None:
    """The sentence names the owner and the stages there are."""
    with pytest.raises(ValueError, match=r"acme.*'before'.*schema, policy, path, gate, execute"):
        Dispatch([Guard("acme", Doing("before", None))])  # type: ignore[arg-type]
