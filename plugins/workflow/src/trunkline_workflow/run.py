"""A run of a workflow, computed from its definition and the results of its calls. Pure.

The same definition, inputs and results always give the same state and the same next call. So the transcript of the
run's turn is its whole state: who continues a run after a crash computes where it is.
"""

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from trunkline_workflow.definition import WAIT, Definition, WorkflowStep
from trunkline_workflow.templates import STEPS, TemplateError, fill, find, path_text

APPROVAL_TOOL, WAIT_TOOL = "workflow_approval", "workflow_wait"

MAX_CALLS = 2_000
"""The largest number of calls of one run."""

NEVER_REPEATED = frozenset(
    {
        "outcome_unknown",
        "approval_denied",
        "permission_denied",
        "cancelled",
        "invalid_arguments",
        "unsupported",
        "no_answer",
    }
)
"""The kinds of errors after which an action is not tried again. After ``outcome_unknown`` the first call may have had
its effect."""

StepState = Literal["running", "waiting_approval", "done", "failed"]


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call. ``value`` is what its JSON says, or the text. ``kind`` is its error's kind, "" for none."""

    value: Any
    kind: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that the run makes next. ``wait`` are the seconds of a call that waits, else None."""

    id: str
    tool: str
    arguments: dict[str, Any]
    step: str
    wait: float | None = None
    timeout: float | None = None


ResultOf = Callable[[PlannedCall], CallResult | None]
"""Returns the result of a call; None while there is none."""


@dataclass(slots=True)
class StepVisit:
    """One visit of a step. ``attempts`` counts the calls of an action, ``calls`` are their ids."""

    step: str
    state: StepState = "running"
    attempts: int = 0
    calls: list[str] = field(default_factory=list)
    note: str = ""


@dataclass(slots=True)
class RunState:
    """The state of a run. ``calls`` are all its calls, and ``next`` is the one whose result is missing.

    ``context`` are the inputs, with every result that is a mapping merged into them, and ``steps`` the results by step.
    """

    context: dict[str, Any]
    status: Literal["running", "completed", "failed"] = "running"
    visits: list[StepVisit] = field(default_factory=list)
    calls: list[PlannedCall] = field(default_factory=list)
    next: PlannedCall | None = None

    @property
    def current_step(self) -> str:
        """The id of the last step that was visited; "" before the first."""
        return self.visits[-1].step if self.visits else ""

    @property
    def step_states(self) -> dict[str, str]:
        """The state of each visited step, by its last visit."""
        return {visit.step: visit.state for visit in self.visits}


def replay(
    definition: Definition, inputs: Mapping[str, Any], result_of: ResultOf, run: str, sha256: str
) -> RunState:
    """Return the state of a run with these results of its calls. ``sha256`` is the hash of the file that the run began
    with. Raises what ``result_of`` raises."""
    own = {**definition.inputs, **inputs, STEPS: {}}
    state = RunState(own)
    calls = _Steps(definition, state, run, sha256, frozenset({*own, "error"})).follow()
    try:
        planned = next(calls)
        while (result := result_of(planned)) is not None:
            planned = calls.send(result)
    except StopIteration:
        return state
    state.next = planned
    if planned.tool == APPROVAL_TOOL:
        state.visits[-1].state = "waiting_approval"
    return state


def parse_result(text: str) -> Any:
    """Return what a result says: JSON for mappings, lists, true, false and null; else the text, numbers too, since
    1.10 may be a version."""
    stripped = text.strip()
    if stripped[:1] in ("{", "[") or stripped in ("true", "false", "null"):
        try:
            return msgspec.json.decode(stripped)
        except (msgspec.DecodeError, RecursionError):
            return text
    return text


class _Failed(Exception):
    """The run has failed; the text says why."""


Calls = Generator[PlannedCall, CallResult, None]
Target = Generator[PlannedCall, CallResult, str | None]


class _Steps:
    """Follows the steps. Yields each call, and receives its result."""

    def __init__(
        self, definition: Definition, state: RunState, run: str, sha256: str, own_names: frozenset[str]
    ) -> None:
        self._definition = definition
        self._own_names = own_names
        self._state = state
        self._run = run
        self._sha256 = sha256
        self._visits: Counter[str] = Counter()
        self._calls = 0

    def follow(self) -> Calls:
        id: str | None = self._definition.steps[0].id
        try:
            while id is not None:
                step = self._definition.step(id)
                self._enter(step)
                id = yield from self._target(step)
        except _Failed as error:
            self._state.status = "failed"
            self._state.context["error"] = str(error)
            if self._state.visits:
                self._state.visits[-1].state = "failed"
                self._state.visits[-1].note = str(error)
            return
        self._state.status = "completed"

    def _enter(self, step: WorkflowStep) -> None:
        self._visits[step.id] += 1
        self._state.visits.append(StepVisit(step.id))
        if step.max_visits is not None and self._visits[step.id] > step.max_visits:
            raise _Failed(
                f"{_at(step)} was reached more than {step.max_visits} times, which is its max_visits."
            )

    def _target(self, step: WorkflowStep) -> Target:
        visit = self._state.visits[-1]
        try:
            if step.type == "conditional":
                return self._choose(step, visit)
            if step.type == "approval":
                return (yield from self._approve(step, visit))
            return (yield from self._act(step, visit))
        except TemplateError as error:
            raise _Failed(f"{_at(step)}, line {error.line}: {error}") from error

    def _choose(self, step: WorkflowStep, visit: StepVisit) -> str | None:
        holds = bool(find(self._state.context, step.condition, step.line))
        visit.state = "done"
        visit.note = f"{path_text(step.condition)} is {'true' if holds else 'false'}"
        return step.on_approve if holds else step.on_reject

    def _approve(self, step: WorkflowStep, visit: StepVisit) -> Target:
        """Ask until a decision counts: it does not if the workflow's file was changed and nobody was told of it."""
        arguments: dict[str, Any] = {
            "workflow": self._definition.name,
            "step": step.id,
            "message": str(fill(step.message, self._state.context) or step.name),
            "run": self._run,
            "sha256": self._sha256,
        }
        while True:
            result = yield self._call(step, APPROVAL_TOOL, arguments)
            changed = _changed_to(result)
            if changed is None:
                break
            arguments = {**arguments, "changed_to": changed}
        if result.kind == "approval_denied":
            visit.state, visit.note = "done", "rejected"
            if step.on_reject is None:
                raise _Failed(f"{_at(step)} was rejected.")
            return step.on_reject
        if result.kind:
            raise _Failed(f"{_at(step)} could not be decided: {result.text}")
        visit.state, visit.note = "done", "approved"
        return step.on_approve

    def _act(self, step: WorkflowStep, visit: StepVisit) -> Target:
        arguments = fill(step.args, self._state.context)
        if step.action == WAIT:
            result = yield self._call(step, WAIT_TOOL, {}, wait=arguments["seconds"])
        else:
            result = yield self._call(step, step.action, arguments)
        for number in range(step.retry.times):
            if not result.kind or result.kind in NEVER_REPEATED:
                break
            pause = step.retry.backoff * 2**number
            if pause:
                yield self._call(step, WAIT_TOOL, {}, wait=min(pause, 3600.0))
            result = yield self._call(step, step.action, arguments)
        if result.kind:
            if step.on_error is None:
                raise _Failed(f"{_at(step)} failed ({result.kind}): {result.text}")
            visit.state, visit.note = "failed", result.text
            self._state.context["error"] = result.text
            return step.on_error
        self._merge(step, result.value)
        visit.state = "done"
        return step.next

    def _merge(self, step: WorkflowStep, value: Any) -> None:
        """Keep the result, and merge a mapping into the context, except over the names that belong to the run: a
        result, which may come from anywhere, must not change an input that a person gave and approved.
        """
        context = self._state.context
        if isinstance(value, dict):
            context.update({key: one for key, one in value.items() if key not in self._own_names})
        context[STEPS] = {**context[STEPS], step.id: value}

    def _call(
        self, step: WorkflowStep, tool: str, arguments: dict[str, Any], wait: float | None = None
    ) -> PlannedCall:
        self._calls += 1
        if self._calls > MAX_CALLS:
            raise _Failed(f"The run made {MAX_CALLS} calls, which is the limit.")
        visit = self._state.visits[-1]
        visit.attempts += wait is None or step.action == WAIT
        id = f"wf_{step.id}_{self._visits[step.id]}_{len(visit.calls)}"
        visit.calls.append(id)
        timeout = step.timeout if tool == step.action else None
        planned = PlannedCall(id, tool, arguments, step.id, wait, timeout)
        self._state.calls.append(planned)
        return planned


def _at(step: WorkflowStep) -> str:
    return f"The step {step.id!r} (line {step.line})"


def _changed_to(result: CallResult) -> str | None:
    """Return the hash of the file's present text if the approval was refused because of it, else None."""
    mark, _, rest = result.text.partition(" ")
    if result.kind != "conflict" or not mark.startswith("changed_to="):
        return None
    return mark.removeprefix("changed_to=") if rest else None
