"""Building the request of a fork, and checking its step. Pure.

The monitor builds the transcript from the turn's journal; the gateway does not.
"""

from msgspec.structs import replace

from trunkline.contracts.conversations.messages import ForkedFrom
from trunkline.contracts.gateway.messages import ForkTurn
from trunkline.contracts.turns.journal_messages import ModelCallPlanned, TurnFinished, TurnStarted
from trunkline.contracts.turns.messages import Fork, TurnRequested
from trunkline.errors import ErrorCode
from trunkline.policy.turn_permissions import initial_permissions, remaining_permissions
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.turn_lookup import TurnState


def check_step(state: TurnState, command: ForkTurn) -> None:
    """Refuse a step that the turn does not have.

    ``invalid_request``: there is no such step. ``conflict``: the fork begins after the last step without a new
    message.
    """
    called_steps = {entry.step for entry in state.entries if isinstance(entry, ModelCallPlanned)}
    ended = any(isinstance(entry, TurnFinished) and entry.code is None for entry in state.entries)
    after = max(called_steps, default=-1) + 1
    if command.step == after and called_steps and ended:
        if command.content is None:
            raise refusal(
                ErrorCode.CONFLICT,
                f"The turn ended before step {after}. Give a message to continue from its end.",
            )
        return
    if command.step not in called_steps:
        had = f"its steps are 0 to {after - 1}" if called_steps else "it has called no model yet"
        raise InvalidField(("step",), f"The turn has no step {command.step}: {had}.")


def model_used(state: TurnState) -> str | None:
    """Return the model that the turn used. The present preferences do not matter."""
    started = next((entry for entry in state.entries if isinstance(entry, TurnStarted)), None)
    return (started.model if started is not None else "") or state.request.model


def build_fork_request(request: TurnRequested, state: TurnState, command: ForkTurn) -> TurnRequested:
    """Return the request of the new turn, with its origin.

    Without new content the fork repeats the messages of the original senders, so its permissions are limited to the
    senders' permissions.
    """
    origin = ForkedFrom(conversation=state.request.conversation, turn=state.request.turn, step=command.step)
    if command.content is None:
        scopes = remaining_permissions(state.request, state.entries).intersect(
            initial_permissions(request).scopes
        )
        request = replace(request, permissions=scopes)
    return replace(request, history=None, fork=Fork(origin=origin, says=command.content is not None))
