"""Conversations: a passage for each message that says something, with what was said around it.

A turn is often short and says little by itself ("Yes, the green one"). So a turn is found by the two before and the two
behind it as well; docs/explanation/recall.md says what else was measured. What only repeats memory is no passage and
nobody's neighbour (``evidence``).
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from trunkline import Message
from trunkline_git_store.conversations import ConversationFile, parse
from trunkline_git_store.index.evidence import ends_with_question, is_derived, is_only_question
from trunkline_git_store.index.passage import Passage, to_micros

NEIGHBOURS = 2
"""The number of messages before and after a message that count as its neighbours."""

NEIGHBOUR_TIME = timedelta(hours=1)
"""A pause after which people talk of something else."""

NEIGHBOUR_CHARACTERS = 600
"""The number of characters of a message that count for its neighbours."""


class SpokenMessage(NamedTuple):
    """A message that says something, and its line. ``looked_up`` is a question that memory was searched for."""

    line: int
    message: Message
    looked_up: bool


def conversation_passages(path: str, data: bytes) -> list[Passage]:
    """Return the passages of all messages."""
    conversation = parse(path, data)
    return message_passages(conversation, 0, conversation.height)


def message_passages(conversation: ConversationFile, above: int, upto: int) -> list[Passage]:
    """Return the messages on the lines after ``above`` until ``upto``, in order, and the last earlier ones,
    whose neighbours have changed. A conversation of a single turn is not searched and has none."""
    if conversation.header.one_shot:
        return []
    said, older = _spoken_messages(conversation, above, upto)
    return [
        _message_passage(conversation.header.id, said, at)
        for at in range(max(0, older - NEIGHBOURS), len(said))
    ]


def text_with_speaker(message: Message) -> str:
    """Return the text of a message, with the speaker where people have names."""
    if message.name and message.role != "tool":
        return f"{message.name}: {message.content}"
    return message.content


def _spoken_messages(
    conversation: ConversationFile, above: int, upto: int
) -> tuple[list[SpokenMessage], int]:
    """The messages that say something, and how many of them are on the lines until ``above``: no more than needed."""
    said: list[SpokenMessage] = []
    older, searched = 0, set[str | None]()
    for number in range(len(conversation.messages) - 1, -1, -1):
        line, message = conversation.lines[number], conversation.messages[number]
        if line > upto:
            continue
        if is_derived(message):
            searched.add(message.turn)
        elif message.content:
            searched_for = message.role == "user" and message.turn in searched
            said.append(SpokenMessage(line, message, searched_for and is_only_question(message.content)))
            older += line <= above
        if older == 2 * NEIGHBOURS:
            break
    return said[::-1], older


def _message_passage(conversation: str, messages: Sequence[SpokenMessage], at: int) -> Passage:
    line, message, looked_up = messages[at]
    return Passage(
        line,
        text_with_speaker(message),
        kind="turn",
        name=message.id,
        at=to_micros(message.created_at),
        speaker=(message.name or message.role).casefold(),
        role=message.role,
        conversation=conversation,
        before=_neighbour_texts(message, messages[max(0, at - NEIGHBOURS) : at]),
        after=_neighbour_texts(message, messages[at + 1 : at + 1 + NEIGHBOURS]),
        asks=ends_with_question(message.content),
        aside=looked_up,
    )


def _neighbour_texts(message: Message, others: Sequence[SpokenMessage]) -> tuple[str, ...]:
    """Return the texts of neighbours in the same session.

    Results of tools are too long to help, and each answer about memory's content would otherwise match the
    content again.
    """
    return tuple(
        text_with_speaker(other)[:NEIGHBOUR_CHARACTERS]
        for _, other, looked_up in others
        if not looked_up
        and other.role != "tool"
        and abs(other.created_at - message.created_at) <= NEIGHBOUR_TIME
    )
