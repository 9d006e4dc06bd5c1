"""Validation of the results of a client's tools: as at OpenAI, a result without its call is refused.

A transcript contains the call itself, right before its results. In a conversation that the client names by
header, the call must be in the newest turn: any later turn has settled the open calls of an earlier one.
"""

from collections.abc import Iterable, Iterator, Sequence

from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.conversations.orphan_results import ORPHAN_RESULT_TEXT, first_orphan_result
from trunkline.contracts.turns.journal_messages import ModelCallFinished
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.turn_lookup import TurnLookup, TurnState


def check_transcript_results(messages: Iterable[Message]) -> None:
    """Refuse a result that answers no call of the assistant message before it, or a call that is already
    answered."""
    number = first_orphan_result(messages)
    if number is not None:
        raise _no_call(number)


async def check_conversation_results(
    turns: TurnLookup,
    conversation: str,
    turn: str | None,
    history: Sequence[Message],
    messages: Sequence[Message],
) -> None:
    """Refuse a result in ``messages`` that answers no call of the conversation's newest turn.

    A repeat of the message that began ``turn`` is not checked again. When no turn of the conversation is stored,
    nothing is refused.
    """
    results = list(_results_of_earlier_calls(messages, len(history)))
    if not results or (turn is not None and await turns.has_journal(conversation, turn)):
        return
    newest = await turns.newest_turn(conversation)
    state = await turns.find(newest) if newest is not None and newest != turn else None
    if state is None:
        return
    waiting = _client_calls(state)
    for number, result in results:
        if result.tool_call_id not in waiting:
            raise _no_call(number)
        waiting.discard(result.tool_call_id)


def check_following_results(state: TurnState, messages: Sequence[Message]) -> None:
    """Refuse a result that answers no call of the turn that the messages continue."""
    waiting = _client_calls(state)
    for number, message in _results_of_earlier_calls(messages, 0):
        if message.tool_call_id not in waiting:
            raise InvalidField(("input", number, "call_id"), ORPHAN_RESULT_TEXT)
        waiting.discard(message.tool_call_id)


def _results_of_earlier_calls(messages: Sequence[Message], first: int) -> Iterator[tuple[int, Message]]:
    """Yield the results whose calls are not among the messages, with their numbers from ``first`` on."""
    own: set[str | None] = set()
    for number, message in enumerate(messages, first):
        own.update(call.id for call in message.tool_calls)
        if message.role == "tool" and message.tool_call_id not in own:
            yield number, message
        own.discard(message.tool_call_id)


def _no_call(number: int) -> InvalidField:
    return InvalidField(("messages", number, "tool_call_id"), ORPHAN_RESULT_TEXT)


def _client_calls(state: TurnState) -> set[str]:
    """Return the ids of calls in the turn's last answer that name tools of the client."""
    names = {tool.name for tool in state.request.client_tools}
    answers = [entry for entry in state.entries if isinstance(entry, ModelCallFinished)]
    return {call.id for call in answers[-1].tool_calls if call.name in names} if answers else set()
