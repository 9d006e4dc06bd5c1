"""The subjects of turns: the inbox, the journal, the effect ledger, the feed and the facts."""

from trunkline.contracts.streams import EFFECT_STREAM, FACT_STREAM, FEED_STREAM, INBOX_STREAM, JOURNAL_STREAM
from trunkline.contracts.tools.messages import EffectRecord
from trunkline.contracts.turns.context_view import ContextView, GetContext
from trunkline.contracts.turns.feed_messages import FeedItem
from trunkline.contracts.turns.journal_messages import TurnRecord
from trunkline.contracts.turns.messages import InboxItem, TurnFact
from trunkline_bus import Endpoint, Subject, Topic

INBOX: Topic[InboxItem] = Topic(
    name="turn inbox",
    subject=Subject("trunkline.turn.inbox.{conversation}"),
    stored=Subject("trunkline.turn.part.{partition}.{conversation}"),
    payload=InboxItem,  # type: ignore[arg-type]
    stream=INBOX_STREAM,
    doc="The input of a turn: messages, steering, cancels, decisions. Each item is durable until it is processed.",
)
MOVED_INBOX: Topic[InboxItem] = Topic(
    name="moved inbox items",
    subject=Subject("trunkline.turn.moved.{conversation}"),
    stored=INBOX.stored,
    payload=InboxItem,  # type: ignore[arg-type]
    stream=INBOX_STREAM,
    doc="Waiting inbox items while the number of partitions changes; read only during that change.",
)
JOURNAL: Topic[TurnRecord] = Topic(
    name="turn journal",
    subject=Subject("trunkline.journal.turn.{conversation}.{turn}"),
    payload=TurnRecord,
    stream=JOURNAL_STREAM,
    doc="Every step of a turn, before and after it happens. Written by compare-and-set over the conversation.",
)
EFFECT: Topic[EffectRecord] = Topic(
    name="effect ledger",
    subject=Subject("trunkline.journal.effect.{call}"),
    payload=EffectRecord,  # type: ignore[arg-type]
    stream=EFFECT_STREAM,
    doc="The starts and ends of tool calls, so that no call has its effect twice.",
)
FEED: Topic[FeedItem] = Topic(
    name="turn feed",
    subject=Subject("trunkline.feed.turn.{conversation}.{turn}"),
    payload=FeedItem,
    stream=FEED_STREAM,
    doc="The events that clients receive while a turn runs.",
)
TURN_FACT: Topic[TurnFact] = Topic(
    name="turn facts",
    subject=Subject("trunkline.evt.turn.{block}.{fact}"),
    payload=TurnFact,
    stream=FACT_STREAM,
    doc="A turn started, parked or finished.",
)
TURN_CONTEXT = Endpoint(
    "turn.context", Subject("trunkline.cmd.turn.context"), GetContext, ContextView, root=False,
    doc="What a model was sent in a turn, part by part.",
)  # fmt: skip
