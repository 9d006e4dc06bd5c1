"""The progress of a split task, read from the messages of its turn. Pure.

Nothing else remembers it, so that any monitor continues where the last one stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trunkline import Message
from trunkline.api.text import unwrap_tool_result
from trunkline_router.subtask import Subtask, steps_in

RUN_TOOL, ASK_TOOL = "agent_run", "ask_human"
"""The tools that run a step and that ask the owner."""

RUN_ANSWER, REFUSE_ANSWER = "Run these steps", "Do not run them"
"""The answers that the owner is offered."""

_ANSWERED = "The owner answered: "

Approval = Literal["none", "allowed", "refused", "changed"]
"""Whether the owner was asked about the steps, and the decision. ``changed`` asks for other steps."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step: what its agent answered, or why it failed."""

    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class StepProgress:
    """The state of a split task.

    ``task`` is what the person wrote, and ``remarks`` what the person added since. ``answered`` is true if a model has
    answered in this turn. ``steps`` are empty if the task is not split. ``change`` is what the owner wants changed.
    """

    task: str
    remarks: tuple[str, ...]
    answered: bool
    steps: tuple[Subtask, ...]
    results: dict[int, StepResult]
    approval: Approval
    change: str = ""

    @property
    def ready(self) -> tuple[Subtask, ...]:
        """The steps that have no result and whose needed results are there."""
        return tuple(
            step
            for step in self.steps
            if step.number not in self.results and all(one in self.results for one in step.after)
        )

    @property
    def failures(self) -> tuple[Subtask, ...]:
        """The steps that failed."""
        return tuple(step for step in self.steps if self.results[step.number].failed)


def read_progress(messages: Sequence[Message], turn: str) -> StepProgress:
    """Return the state of the split task of a turn."""
    own = [message for message in messages if message.turn == turn]
    people = [message.content for message in own if message.role == "user"]
    answers = [message for message in own if message.role == "assistant"]
    planned = next(
        (number for number in reversed(range(len(answers))) if steps_in(answers[number].content)), None
    )
    outcomes = {message.tool_call_id: message for message in own if message.role == "tool"}
    if planned is None:
        return StepProgress(_first(people), tuple(people[1:]), bool(answers), (), {}, "none")
    steps = steps_in(answers[planned].content)
    called = {
        call.id for message in answers[planned:] for call in message.tool_calls if call.name == RUN_TOOL
    }
    results = {
        step.number: _result(outcomes[id])
        for step in steps
        if (id := call_id(step)) in called and id in outcomes
    }
    questions = [call.id for call in answers[planned].tool_calls if call.name == ASK_TOOL]
    approval, change = _decision(outcomes.get(questions[0])) if questions else ("none", "")
    if approval == "changed" and planned + 1 < len(answers):
        # The task was split anew by the person's words and found to be a single step, which the model works on.
        return StepProgress(_first(people), tuple(people[1:]), True, (), {}, "none")
    return StepProgress(_first(people), tuple(people[1:]), True, steps, results, approval, change)


def call_id(step: Subtask) -> str:
    """Return the id of the call that runs a step."""
    return f"step_{step.number}"


def _first(people: Sequence[str]) -> str:
    return people[0] if people else ""


def _result(outcome: Message) -> StepResult:
    return StepResult(unwrap_tool_result(outcome.content), outcome.error)


def _decision(outcome: Message | None) -> tuple[Approval, str]:
    """Return the owner's decision and the change that is wanted. No answer is a refusal."""
    if outcome is None or outcome.error or not outcome.content.startswith(_ANSWERED):
        return "refused", ""
    said = outcome.content.removeprefix(_ANSWERED).strip()
    plain = said.casefold().rstrip(".!")
    if plain in (RUN_ANSWER.casefold(), "run", "yes", "y", "ok"):
        return "allowed", ""
    return ("refused", "") if plain in (REFUSE_ANSWER.casefold(), "no", "n", "") else ("changed", said)
