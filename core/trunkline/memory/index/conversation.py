"""Conversations: a passage for each message that says something."""

from trunkline.memory.conversations import Conversation, parse
from trunkline.memory.index.passage import Passage, micros
from trunkline.messages.conversation import Message


def conversation_passages(path: str, data: bytes) -> list[Passage]:
    """Everything that was said."""
    conversation = parse(path, data)
    return turns(conversation, 0, conversation.height)


def turns(conversation: Conversation, above: int, upto: int) -> list[Passage]:
    """What was said on the lines after ``above`` until ``upto``, in order."""
    found: list[Passage] = []
    for number in range(len(conversation.messages) - 1, -1, -1):
        line, message = conversation.lines[number], conversation.messages[number]
        if line <= above:
            break
        if line <= upto and message.content:
            found.append(_turn(conversation.header.id, line, message))
    return found[::-1]


def _turn(conversation: str, line: int, message: Message) -> Passage:
    return Passage(
        line,
        message.content,
        kind="turn",
        name=message.id,
        at=micros(message.created_at),
        speaker=(message.name or message.role).casefold(),
        conversation=conversation,
    )
