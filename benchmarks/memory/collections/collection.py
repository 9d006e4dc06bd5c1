"""A collection: texts as conversations or files, and questions with the texts that answer them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from trunkline.contracts.conversations.messages import Message

Evidence = frozenset[str]
"""Texts of which each answers the question alone, such as a mail and the replies that quote it."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and what is needed to answer it: one text of each of ``evidence``."""

    text: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of a conversation. Their ids are unique in the collection."""

    id: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A file. ``id`` is its path below ``documents/``."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Collection:
    """Texts and questions. The id of a message or of a document is what the evidence of a question names."""

    name: str
    questions: Sequence[Question]
    conversations: Sequence[Conversation] = ()
    documents: Sequence[Document] = ()


def turn(id: str, at: datetime, speaker: str, text: str) -> Message:
    """Return a message of a person with a name, or of ``user`` and ``assistant``."""
    if speaker == "assistant":
        return Message(id=id, role="assistant", content=text, created_at=at)
    return Message(
        id=id, role="user", content=text, created_at=at, name=None if speaker == "user" else speaker
    )
