"""Channels: how people send messages to a block, see its turns and decide approvals."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.result_format import format_result as format_result
    from trunkline.contracts.approvals.messages import DECIDED_BY_DEADLINE as DECIDED_BY_DEADLINE
    from trunkline.contracts.approvals.messages import describe_decider as describe_decider
    from trunkline.contracts.channels.channel import Channel as Channel
    from trunkline.contracts.channels.channel import Gateway as Gateway
    from trunkline.contracts.channels.channel import TurnStream as TurnStream
    from trunkline.contracts.channels.foreground_channel import ForegroundChannel as ForegroundChannel
    from trunkline.contracts.channels.foreground_channel import TerminalSession as TerminalSession
    from trunkline.contracts.gateway.answerer import Answerer as Answerer
    from trunkline.contracts.models.listing import AdapterListing as AdapterListing
    from trunkline.contracts.turns.context_view import ContextView as ContextView
    from trunkline.contracts.turns.context_view import SentPart as SentPart
    from trunkline.workers.channels.approval_text import ApprovalDecision as ApprovalDecision
    from trunkline.workers.channels.approval_text import approval_news as approval_news
    from trunkline.workers.channels.approval_text import approval_words as approval_words
    from trunkline.workers.channels.approval_text import chosen as chosen
    from trunkline.workers.channels.approval_text import parse_decision as parse_decision
    from trunkline.workers.channels.approval_text import submit_decision as submit_decision
    from trunkline.workers.channels.approval_text import waiting_approval as waiting_approval
    from trunkline.workers.channels.context_text import describe_context as describe_context
    from trunkline.workers.channels.conversation_lookup import conversation_found as conversation_found
    from trunkline.workers.channels.letter_channel import Letter as Letter
    from trunkline.workers.channels.letter_channel import LetterChannel as LetterChannel
    from trunkline.workers.channels.model_command import DEFAULT_MODEL as DEFAULT_MODEL
    from trunkline.workers.channels.model_command import describe_answerer as describe_answerer
    from trunkline.workers.channels.model_command import describe_models as describe_models
    from trunkline.workers.channels.model_command import wanted_model as wanted_model
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
