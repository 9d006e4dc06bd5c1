"""Turns: their feed of events, their journal, and middleware around them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.contracts.streams import FACT_STREAM as FACT_STREAM
    from trunkline.contracts.streams import LEARNER_CONSUMER as LEARNER_CONSUMER
    from trunkline.contracts.turns.compaction import CompactionCause as CompactionCause
    from trunkline.contracts.turns.compaction import CompactionJob as CompactionJob
    from trunkline.contracts.turns.compaction import Compactor as Compactor
    from trunkline.contracts.turns.compaction import SummaryDraft as SummaryDraft
    from trunkline.contracts.turns.context import TurnMiddleware as TurnMiddleware
    from trunkline.contracts.turns.feed_messages import ApprovalRequested as ApprovalRequested
    from trunkline.contracts.turns.feed_messages import ApprovalSettled as ApprovalSettled
    from trunkline.contracts.turns.feed_messages import FeedEvent as FeedEvent
    from trunkline.contracts.turns.feed_messages import MessageSteered as MessageSteered
    from trunkline.contracts.turns.feed_messages import ReasoningDelta as ReasoningDelta
    from trunkline.contracts.turns.feed_messages import StatusShown as StatusShown
    from trunkline.contracts.turns.feed_messages import TextDelta as TextDelta
    from trunkline.contracts.turns.feed_messages import TextReset as TextReset
    from trunkline.contracts.turns.feed_messages import ToolEnded as ToolEnded
    from trunkline.contracts.turns.feed_messages import ToolProgressed as ToolProgressed
    from trunkline.contracts.turns.feed_messages import ToolStarted as ToolStarted
    from trunkline.contracts.turns.feed_messages import TurnEnded as TurnEnded
    from trunkline.contracts.turns.journal_messages import ApprovalAsked as ApprovalAsked
    from trunkline.contracts.turns.journal_messages import ApprovalRecorded as ApprovalRecorded
    from trunkline.contracts.turns.journal_messages import JournalEntry as JournalEntry
    from trunkline.contracts.turns.journal_messages import ToolFinished as ToolFinished
    from trunkline.contracts.turns.journal_messages import TurnFinished as TurnFinished
    from trunkline.contracts.turns.journal_messages import TurnStarted as TurnStarted
    from trunkline.contracts.turns.messages import FinishReason as FinishReason
    from trunkline.contracts.turns.messages import TurnFact as TurnFact
    from trunkline.contracts.turns.messages import TurnRequested as TurnRequested
    from trunkline.contracts.turns.subjects import JOURNAL as JOURNAL
    from trunkline.contracts.turns.subjects import TURN_FACT as TURN_FACT
    from trunkline.contracts.turns.turn_route import TurnRoute as TurnRoute
    from trunkline.contracts.turns.turn_router import TurnRouter as TurnRouter
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
