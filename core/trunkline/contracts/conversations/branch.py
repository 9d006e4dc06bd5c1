"""Branches: the places where a conversation and those forked from the same one part.

A fork is a conversation of its own that begins with the same messages, by their ids. So branches are found by comparing
ids, whatever step a fork began at, and nothing about them is stored but the origin of each fork (ADR 84).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import takewhile

import msgspec

from trunkline.contracts.conversations.messages import ConversationSummary, Message
from trunkline.contracts.memory.operation import query
from trunkline_bus import Payload


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation behind a place: its ``turn`` there ("" if the message has none), and the time of that turn's
    last message.
    """

    conversation: str
    turn: str
    written_at: datetime


class BranchPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a conversation at which others go on differently. ``message`` is the first message behind it and
    ``turn`` that message's turn, both in this conversation. ``branches`` are in the order in which they were written;
    this conversation's is one of them.
    """

    message: str
    turn: str
    branches: tuple[Branch, ...]


class FindBranches(Payload, frozen=True, kw_only=True, tag="conversation.branches.v1"):
    """Ask for the branches of a conversation."""

    block: str
    conversation: str


class ConversationBranches(Payload, frozen=True, kw_only=True, tag="conversation.branch-points.v1"):
    """The branch points of a conversation, in its order, and the conversations of its family: the one that all were
    forked from, then its forks, this conversation included. A conversation that was never forked has no points.
    """

    points: tuple[BranchPoint, ...] = ()
    family: tuple[ConversationSummary, ...] = ()


def shared_length(messages: Sequence[Message], others: Sequence[Message]) -> int:
    """Return how many messages two conversations have in common at their beginning."""
    pairs = zip(messages, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].id == pair[1].id, pairs))


def find_branch_points(conversation: str, family: Mapping[str, Sequence[Message]]) -> tuple[BranchPoint, ...]:
    """Return the branch points of a conversation. ``family`` are the messages of each conversation of its family. Of
    several that have the same branch, the first stands for it.
    """
    own = family[conversation]
    found: dict[int, dict[str, Branch]] = {}
    for other, messages in family.items():
        at = shared_length(own, messages)
        if at < min(len(own), len(messages)):  # a conversation shares all its messages with itself
            found.setdefault(at, {}).setdefault(messages[at].id, _branch(other, messages, at))
    return tuple(
        BranchPoint(
            message=own[at].id,
            turn=own[at].turn or "",
            branches=_in_order((_branch(conversation, own, at), *others.values())),
        )
        for at, others in sorted(found.items())
    )


def _branch(conversation: str, messages: Sequence[Message], at: int) -> Branch:
    turn = messages[at].turn
    said = list(takewhile(lambda message: message.turn == turn, messages[at:]))
    return Branch(conversation=conversation, turn=turn or "", written_at=said[-1].created_at)


def _in_order(branches: Iterable[Branch]) -> tuple[Branch, ...]:
    return tuple(sorted(branches, key=lambda branch: (branch.written_at, branch.conversation)))


MEMORY_FIND_BRANCHES = query(
    "conversation-branches",
    FindBranches,
    ConversationBranches,
    "Where a conversation and its forks part.",
    ("gateway",),
)
