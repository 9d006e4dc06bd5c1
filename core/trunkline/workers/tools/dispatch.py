"""Passes a call through its guards in the fixed order schema, policy, path, gate, execute (design, section 7).

Guards fail closed: any failure in a guard refuses the call. This module knows no specific guard and runs no tool.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import msgspec

from trunkline.contracts.tools.messages import ToolOutcome, ToolSpec
from trunkline.contracts.tools.tool import STAGES, Proceed, ToolInvocation, ToolMiddleware
from trunkline.plugins.activity_log import ActivityKind
from trunkline.workers.tools.error_outcomes import (
    incident_outcome,
    is_being_cancelled,
    refusal_outcome,
    tool_error_in,
)
from trunkline.workers.tools.path_resolution import resolved_arguments
from trunkline_bus import key_of

MAY_CHANGE_ARGUMENTS = ("schema", "policy")
"""The stages whose guards may change the arguments. The arguments that the path and gate stages saw are the
ones that run."""


ActivityRecorder = Callable[[str, ActivityKind], AbstractContextManager[None]]
"""Records that a plugin is active."""


def _unrecorded(owner: str, doing: ActivityKind) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Guard:
    """A middleware and its owner: ``trunkline`` or the name of a plugin."""

    owner: str
    middleware: ToolMiddleware


@dataclass(slots=True)
class _DispatchState:
    """The state of one dispatch. ``questions`` are the questions of the gates; ``merged`` is the one question made of
    them.
    """

    performed: bool = False
    questions: list[ToolOutcome] = field(default_factory=list)
    merged: ToolOutcome | None = None


class Dispatch:
    """All guards in order. Guards of one stage keep the given order, so the built-in guards run first."""

    def __init__(self, guards: Sequence[Guard], record_activity: ActivityRecorder = _unrecorded) -> None:
        """Raise ValueError for a guard of an unknown stage."""
        for guard in guards:
            if guard.middleware.stage not in STAGES:
                raise ValueError(
                    f"the tool middleware of {guard.owner} names the stage {guard.middleware.stage!r}; "
                    f"use one of {', '.join(STAGES)}"
                )
        self._record_activity = record_activity
        self.guards = tuple(sorted(guards, key=lambda guard: STAGES.index(guard.middleware.stage)))

    async def __call__(self, invocation: ToolInvocation, perform: Proceed) -> ToolOutcome:
        """Pass the call through every guard to ``perform``, or return the outcome of the guard that
        refused."""
        return await self._run_guards(0, invocation, perform, _DispatchState())

    async def _run_guards(
        self, index: int, invocation: ToolInvocation, perform: Proceed, state: _DispatchState
    ) -> ToolOutcome:
        if state.questions and self._is_past_gates(index):
            state.merged = _merged(state.questions, invocation)
            return state.merged
        if index == len(self.guards):
            return await _perform_checked(invocation, perform, state)
        guard = self.guards[index]

        async def proceed(following: ToolInvocation) -> ToolOutcome:
            return await self._run_guards(index + 1, _checked(guard, invocation, following), perform, state)

        try:
            with self._record_activity(guard.owner, "guard"):
                outcome = await guard.middleware(invocation, proceed)
        except BaseException as error:
            if isinstance(error, anyio.get_cancelled_exc_class()) and is_being_cancelled():
                raise
            return _refusal(guard, invocation, error, state)
        asks = isinstance(outcome, ToolOutcome) and outcome.status == "approval"
        if not isinstance(outcome, ToolOutcome) or (asks and state.performed):
            return _guard_failure(guard, invocation, None, state)
        if asks:
            return await self._continue_asking(index, invocation, outcome, perform, state)
        return outcome

    async def _continue_asking(
        self,
        index: int,
        invocation: ToolInvocation,
        outcome: ToolOutcome,
        perform: Proceed,
        state: _DispatchState,
    ) -> ToolOutcome:
        """Continue after a gate that asks for a person's decision. With an approval of exactly this call, the call
        proceeds.

        Without an approval, the later gates run first. So a person is asked once, about everything, and never about a
        call that a later gate refuses.
        """
        if (
            state.merged is not None
        ):  # this gate only returns the merged question of later gates, possibly with a preview
            detail = outcome.detail if state.merged.detail is msgspec.UNSET else state.merged.detail
            return msgspec.structs.replace(state.merged, detail=detail)
        if invocation.approved is None or invocation.approved != invocation.call_hash:
            state.questions.append(outcome)
        return await self._run_guards(index + 1, invocation, perform, state)

    def _is_past_gates(self, index: int) -> bool:
        return index == len(self.guards) or self.guards[index].middleware.stage == "execute"


def call_hash(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Return the hash that binds an approval to a call: tool, source, definition, exact arguments, and the targets of
    the paths in them.

    While a person decides, another server may take the tool's name, the server may change the tool, or a link may be
    replaced.
    """
    text = json.dumps(
        resolved_arguments(spec, arguments), sort_keys=True, separators=(",", ":"), default=repr
    )
    return key_of("call", spec.source, spec.name, spec.definition, text)


def _merged(questions: Sequence[ToolOutcome], invocation: ToolInvocation) -> ToolOutcome:
    """Return all questions as one. The merged question offers no lasting approval, because that would silence several
    gates at once.
    """
    asked = list(dict.fromkeys(outcome.question for outcome in questions))
    detail = next((one.detail for one in questions if one.detail is not msgspec.UNSET), msgspec.UNSET)
    if len(questions) > 1 and not isinstance(detail, msgspec.UnsetType):
        detail = msgspec.structs.replace(detail, shape="", covers="")
    return ToolOutcome(
        call=invocation.context.call,
        status="approval",
        call_hash=invocation.call_hash,
        question="\n".join(asked),
        detail=detail,
    )


async def _perform_checked(
    invocation: ToolInvocation, perform: Proceed, state: _DispatchState
) -> ToolOutcome:
    if state.performed and not invocation.spec.repeatable:
        raise RuntimeError(f"a guard proceeded twice with {invocation.spec.name}, which must not run twice")
    if call_hash(invocation.spec, invocation.arguments) != invocation.call_hash:
        name = invocation.spec.name
        raise RuntimeError(
            f"a guard changed the arguments of {name} in place, or the target of a path in them changed"
        )
    state.performed = True
    return await perform(invocation)


def _checked(guard: Guard, before: ToolInvocation, after: ToolInvocation) -> ToolInvocation:
    """Return the invocation that a guard passes on, with the hash of its arguments. Raises RuntimeError when the
    guard changed something that it may not change.
    """
    if after is before:
        return before
    same = (before.spec, before.context, before.approved) == (after.spec, after.context, after.approved)
    stage = guard.middleware.stage
    if not same or (after.arguments != before.arguments and stage not in MAY_CHANGE_ARGUMENTS):
        raise RuntimeError(
            f"a guard of {guard.owner} at the stage {stage} changed the call; it may only refuse it"
        )
    if after.arguments is before.arguments:
        return before
    return replace(after, call_hash=call_hash(after.spec, after.arguments))


def _refusal(
    guard: Guard, invocation: ToolInvocation, error: BaseException, state: _DispatchState
) -> ToolOutcome:
    error_of_tool = tool_error_in(error)
    if error_of_tool is not None:
        return refusal_outcome(invocation.context.call, error_of_tool)
    return _guard_failure(guard, invocation, error, state)


def _guard_failure(
    guard: Guard, invocation: ToolInvocation, error: BaseException | None, state: _DispatchState
) -> ToolOutcome:
    name, stage = invocation.spec.name, guard.middleware.stage
    sentence = (
        f"{name} ran, but its result was withheld because a check at the stage {stage} failed."
        if state.performed
        else f"{name} was not run, because a check at the stage {stage} failed."
    )
    return incident_outcome(invocation.context.call, sentence, error, owner=guard.owner, stage=stage)
