"""The way of a call through its guards, in the fixed order schema, policy, path, gate, execute (design, section 7).

Guards fail closed: whatever goes wrong in one refuses the call. Knows guards, no particular one, and runs no tool.
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
"""The stages whose guards may hand on other arguments; what the path and gate stages saw is what runs."""


ActivityRecorder = Callable[[str, ActivityKind], AbstractContextManager[None]]
"""Notes that a plugin is at work."""


def _unrecorded(owner: str, doing: ActivityKind) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Guard:
    """A middleware and who brought it: ``trunkline`` or the name of a plugin."""

    owner: str
    middleware: ToolMiddleware


@dataclass(slots=True)
class _DispatchState:
    """What has become of one call so far. ``questions`` are what gates ask, ``merged`` all of them as one."""

    performed: bool = False
    questions: list[ToolOutcome] = field(default_factory=list)
    merged: ToolOutcome | None = None


class Dispatch:
    """All guards in order. Those of one stage stand in the order given, so the built-in ones come first."""

    def __init__(self, guards: Sequence[Guard], at_work: ActivityRecorder = _unrecorded) -> None:
        """Raises ValueError for a guard of an unknown stage."""
        for guard in guards:
            if guard.middleware.stage not in STAGES:
                raise ValueError(
                    f"the tool middleware of {guard.owner} names the stage {guard.middleware.stage!r}; "
                    f"use one of {', '.join(STAGES)}"
                )
        self._at_work = at_work
        self.guards = tuple(sorted(guards, key=lambda guard: STAGES.index(guard.middleware.stage)))

    async def __call__(self, invocation: ToolInvocation, perform: Proceed) -> ToolOutcome:
        """Bring the call past every guard to ``perform``, or return the outcome of the one that refused."""
        return await self._run_guards(0, invocation, perform, _DispatchState())

    async def _run_guards(
        self, index: int, invocation: ToolInvocation, perform: Proceed, trip: _DispatchState
    ) -> ToolOutcome:
        if trip.questions and self._is_past_gates(index):
            trip.merged = _merged(trip.questions, invocation)
            return trip.merged
        if index == len(self.guards):
            return await _perform_checked(invocation, perform, trip)
        guard = self.guards[index]

        async def proceed(following: ToolInvocation) -> ToolOutcome:
            return await self._run_guards(index + 1, _checked(guard, invocation, following), perform, trip)

        try:
            with self._at_work(guard.owner, "guard"):
                outcome = await guard.middleware(invocation, proceed)
        except BaseException as error:
            if isinstance(error, anyio.get_cancelled_exc_class()) and is_being_cancelled():
                raise
            return _refusal(guard, invocation, error, trip)
        asking = isinstance(outcome, ToolOutcome) and outcome.status == "approval"
        if not isinstance(outcome, ToolOutcome) or (asking and trip.performed):
            return _guard_failure(guard, invocation, None, trip)
        if asking:
            return await self._continue_asking(index, invocation, outcome, perform, trip)
        return outcome

    async def _continue_asking(
        self,
        index: int,
        invocation: ToolInvocation,
        outcome: ToolOutcome,
        perform: Proceed,
        trip: _DispatchState,
    ) -> ToolOutcome:
        """A gate wants a person's decision. An approval of exactly this call, once given, passes.

        Else the gates behind it say what they have to say first: a person is asked once, about all of it, and never
        about a call that a later gate refuses anyway.
        """
        if (
            trip.merged is not None
        ):  # it has only passed on what the gates behind it ask, perhaps with a preview
            detail = outcome.detail if trip.merged.detail is msgspec.UNSET else trip.merged.detail
            return msgspec.structs.replace(trip.merged, detail=detail)
        if invocation.approved is None or invocation.approved != invocation.call_hash:
            trip.questions.append(outcome)
        return await self._run_guards(index + 1, invocation, perform, trip)

    def _is_past_gates(self, index: int) -> bool:
        return index == len(self.guards) or self.guards[index].middleware.stage == "execute"


def call_hash(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """What an approval is bound to: the tool, whose it is, what it is said to be, exactly these arguments, and where
    their paths lead. While a person thinks, another server's tool may have come under the name, the server may have
    made it another one, or a link may have been swapped."""
    text = json.dumps(
        resolved_arguments(spec, arguments), sort_keys=True, separators=(",", ":"), default=repr
    )
    return key_of("call", spec.source, spec.name, spec.definition, text)


def _merged(questions: Sequence[ToolOutcome], invocation: ToolInvocation) -> ToolOutcome:
    """All questions as one. A yes to more than this call would silence one gate of several, so it is not offered."""
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


async def _perform_checked(invocation: ToolInvocation, perform: Proceed, trip: _DispatchState) -> ToolOutcome:
    if trip.performed and not invocation.spec.repeatable:
        raise RuntimeError(f"a guard proceeded twice with {invocation.spec.name}, which must not run twice")
    if call_hash(invocation.spec, invocation.arguments) != invocation.call_hash:
        name = invocation.spec.name
        raise RuntimeError(
            f"a guard changed the arguments of {name} in place, or a path in them leads elsewhere now"
        )
    trip.performed = True
    return await perform(invocation)


def _checked(guard: Guard, before: ToolInvocation, after: ToolInvocation) -> ToolInvocation:
    """The invocation that a guard hands on, with the hash of its arguments. Raises when it changed what it may not."""
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
    guard: Guard, invocation: ToolInvocation, error: BaseException, trip: _DispatchState
) -> ToolOutcome:
    told = tool_error_in(error)
    if told is not None:
        return refusal_outcome(invocation.context.call, told)
    return _guard_failure(guard, invocation, error, trip)


def _guard_failure(
    guard: Guard, invocation: ToolInvocation, error: BaseException | None, trip: _DispatchState
) -> ToolOutcome:
    name, stage = invocation.spec.name, guard.middleware.stage
    sentence = (
        f"{name} ran, but its result was withheld because a check at the stage {stage} failed."
        if trip.performed
        else f"{name} was not run, because a check at the stage {stage} failed."
    )
    return incident_outcome(invocation.context.call, sentence, error, owner=guard.owner, stage=stage)
