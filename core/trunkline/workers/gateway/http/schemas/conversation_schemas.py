"""The schemas of conversations, their messages and their models."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from trunkline.contracts.models.listing import AdapterListing
from trunkline.contracts.turns.context_view import SentPart
from trunkline.workers.gateway.http.schemas.schema_base import SAID, In, Out


class NewMessage(In, frozen=True, kw_only=True):
    """A message.

    A request with the same ``metadata.client_message_id`` is a repeat of the same message. ``block`` or
    ``metadata.block`` names the block of a new conversation; one that continues must belong to it. ``metadata.files``
    are the ids of files that were uploaded by ``POST /v1/files`` and belong to the message. ``shows`` tells the model
    in a sentence or two in which form the person sees the answer, such as "Plain text: Markdown is not rendered."; at
    most 500 characters.
    """

    content: Annotated[str, SAID]
    block: str | None = None
    metadata: dict[str, Any] = {}
    shows: str = ""


class ConversationChanges(In, frozen=True, kw_only=True):
    """Changes of a conversation, at least one. ``title`` is its title; null restores the title that is made from the
    first message. ``pinned`` pins or unpins it. ``archived`` takes it off the list, or puts it back.
    """

    title: str | UnsetType | None = UNSET
    pinned: bool | UnsetType = UNSET
    archived: bool | UnsetType = UNSET


class ConversationModel(In, frozen=True, kw_only=True):
    """The model of a conversation, as ``adapter/model``; null removes the choice."""

    model: Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 1, "maxLength": 200})] | None


class CompactionOptions(In, frozen=True, kw_only=True):
    """The options of a compaction: ``focus`` is what the summary must keep in particular, "" for nothing. With
    ``rebirth`` all messages are summarised, and the summary is written to ``memory.md`` of the block."""

    focus: str = ""
    rebirth: bool = False


class ModelLists(Out, frozen=True, kw_only=True):
    """The models of each configured adapter, or why they could not be listed."""

    adapters: tuple[AdapterListing, ...]


class AnsweringModel(Out, frozen=True, kw_only=True):
    """The model that answers the next message of a conversation.

    ``model`` is ``adapter/model``, or the adapter alone if no model is configured; ``context_window`` is in tokens, 0
    if not configured. ``chosen`` is true if the model was chosen for this conversation. ``problem`` says why no model
    answers, "" if one does.
    """

    model: str
    chosen: bool = False
    context_window: int = 0
    problem: str = ""


class ForkOrigin(Out, frozen=True, kw_only=True):
    """The place at which a conversation was forked: before the turn's model call number ``step`` (from 0)."""

    conversation_id: str
    turn_id: str
    step: int


class ConversationItem(Out, frozen=True, kw_only=True):
    """A conversation in the list. ``forked_from`` is the origin of a fork."""

    id: str
    title: str | None = None
    created_at: datetime
    updated_at: datetime
    message_count: int
    pinned: bool = False
    archived: bool = False
    forked_from: ForkOrigin | None = None


class ConversationList(Out, frozen=True, kw_only=True):
    """A page of conversations, newest first."""

    conversations: tuple[ConversationItem, ...]
    total: int
    limit: int
    offset: int


class ConversationMessage(Out, frozen=True, kw_only=True):
    """A message. Messages with the role ``tool`` are only returned with ``include=tools``."""

    id: str
    role: Literal["user", "assistant", "tool", "system"]
    content: str
    created_at: datetime
    metadata: dict[str, Any] = {}


class ConversationDetail(Out, frozen=True, kw_only=True):
    """A conversation with its messages. Its ``block`` is only returned with ``include=tools``."""

    id: str
    block: str | None = None
    title: str | None = None
    messages: tuple[ConversationMessage, ...]
    created_at: datetime
    updated_at: datetime
    pinned: bool = False
    archived: bool = False
    forked_from: ForkOrigin | None = None


class BranchItem(Out, frozen=True, kw_only=True):
    """One conversation behind a place: its turn there, and the time of that turn's last message."""

    conversation_id: str
    turn_id: str
    written_at: datetime


class BranchPlace(Out, frozen=True, kw_only=True):
    """A place at which conversations part. ``message_id`` and ``turn_id`` are the first message behind it in the asked
    conversation, and that message's turn. ``branches`` are in the order in which they were written; the asked
    conversation is one of them.
    """

    message_id: str
    turn_id: str
    branches: tuple[BranchItem, ...]


class BranchList(Out, frozen=True, kw_only=True):
    """The places at which a conversation and its forks part, and all these conversations: first the one that the others
    were forked from.
    """

    points: tuple[BranchPlace, ...]
    family: tuple[ConversationItem, ...]


class ConversationContext(Out, frozen=True, kw_only=True):
    """The parts of what a model was sent in the last model call of a turn.

    ``step`` is the number of that call, from 0. ``input_tokens`` and ``cached_tokens`` are the vendor's own counts, 0
    if the vendor counted none. The tokens of the parts are estimates that add up to ``input_tokens`` if that is known.
    """

    turn_id: str
    step: int
    model: str
    context_window: int
    input_tokens: int
    cached_tokens: int
    parts: tuple[SentPart, ...]


class Accepted(Out, frozen=True, kw_only=True):
    """A message that was accepted into a running turn.

    ``otherwise`` is the turn that answers the message if the running turn ends before taking it in. That turn does not
    exist before then.
    """

    turn: str
    conversation_id: str
    message_id: str
    otherwise: str | None = None
