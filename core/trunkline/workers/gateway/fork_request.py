"""What a fork begins with: whether the turn has that step, and the request that names it. Pure.

The transcript is not put together here: the monitor takes it from the turn's journal, which only it can read as a turn.
"""

from msgspec.structs import replace

from trunkline.contracts.conversations.messages import ForkedFrom
from trunkline.contracts.gateway.messages import ForkTurn
from trunkline.contracts.turns.messages import (
    Fork,
    ModelCallPlanned,
    TurnFinished,
    TurnRequested,
    TurnStarted,
)
from trunkline.errors import ErrorCode
from trunkline.policy.turn_permissions import initial_permissions, remaining_permissions
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.turn_lookup import TurnState


def check_step(state: TurnState, wish: ForkTurn) -> None:
    """Refuse a step that the turn does not have: ``invalid_request``, or ``conflict`` when there is nothing to ask."""
    asked = {entry.step for entry in state.entries if isinstance(entry, ModelCallPlanned)}
    ended = any(isinstance(entry, TurnFinished) and entry.code is None for entry in state.entries)
    after = max(asked, default=-1) + 1
    if wish.step == after and asked and ended:
        if wish.content is None:
            raise refusal(
                ErrorCode.CONFLICT,
                f"The turn ended before a step {after}: say something to go on from its end.",
            )
        return
    if wish.step not in asked:
        had = f"its steps are 0 to {after - 1}" if asked else "it has asked no model yet"
        raise InvalidField(("step",), f"The turn has no step {wish.step}: {had}.")


def model_used(state: TurnState) -> str | None:
    """The model that the turn asked, whatever the preferences say now."""
    began = next((entry for entry in state.entries if isinstance(entry, TurnStarted)), None)
    return (began.model if began is not None else "") or state.request.model


def build_fork_request(request: TurnRequested, state: TurnState, wish: ForkTurn) -> TurnRequested:
    """The request of the new turn, which says where it comes from. Where nothing new is said it follows the words of
    others once more, and may do no more than they may."""
    origin = ForkedFrom(conversation=state.request.conversation, turn=state.request.turn, step=wish.step)
    if wish.content is None:
        scopes = remaining_permissions(state.request, state.entries).intersect(
            initial_permissions(request).scopes
        )
        request = replace(request, permissions=scopes)
    return replace(request, history=None, fork=Fork(origin=origin, says=wish.content is not None))
