"""Channels: how people send messages to a block, see its turns and decide approvals."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.result_format import format_result as format_result
    from trunkline.contracts.approvals.messages import DECIDED_BY_DEADLINE as DECIDED_BY_DEADLINE
    from trunkline.contracts.approvals.messages import describe_decider as describe_decider
    from trunkline.contracts.auth.linked_senders import LinkedSender as LinkedSender
    from trunkline.contracts.channels.channel import Channel as Channel
    from trunkline.contracts.channels.channel import Gateway as Gateway
    from trunkline.contracts.channels.channel import TurnStream as TurnStream
    from trunkline.contracts.channels.foreground_channel import ForegroundChannel as ForegroundChannel
    from trunkline.contracts.channels.foreground_channel import TerminalSession as TerminalSession
    from trunkline.contracts.channels.notice_client import NoticeRound as NoticeRound
    from trunkline.contracts.channels.owner_notice import OwnerNotice as OwnerNotice
    from trunkline.contracts.channels.records import STATE_PREFIX as STATE_PREFIX
    from trunkline.contracts.channels.records import STATE_SECONDS as STATE_SECONDS
    from trunkline.contracts.channels.records import AccountState as AccountState
    from trunkline.contracts.channels.records import ChannelRecord as ChannelRecord
    from trunkline.contracts.channels.records import ChannelRecords as ChannelRecords
    from trunkline.contracts.channels.records import RecordChanged as RecordChanged
    from trunkline.contracts.conversations.messages import Attachment as Attachment
    from trunkline.contracts.costs.report_messages import CostSum as CostSum
    from trunkline.contracts.costs.report_messages import CostTotals as CostTotals
    from trunkline.contracts.gateway.answerer import Answerer as Answerer
    from trunkline.contracts.gateway.messages import TellOwner as TellOwner
    from trunkline.contracts.models.listing import AdapterListing as AdapterListing
    from trunkline.contracts.sentences.catalogue import Sentence as Sentence
    from trunkline.contracts.sentences.catalogue import SentenceCatalogue as SentenceCatalogue
    from trunkline.contracts.sentences.sentences import Sentences as Sentences
    from trunkline.contracts.turns.begun_turn import BegunTurn as BegunTurn
    from trunkline.contracts.turns.context_view import ContextView as ContextView
    from trunkline.contracts.turns.context_view import SentPart as SentPart
    from trunkline.runtime.http.server import serve_app as serve_app
    from trunkline.workers.channels.account_lease import AccountLease as AccountLease
    from trunkline.workers.channels.account_lease import LeaseHolder as LeaseHolder
    from trunkline.workers.channels.account_lease import LeaseLost as LeaseLost
    from trunkline.workers.channels.account_report import AccountReport as AccountReport
    from trunkline.workers.channels.account_session import AccountSession as AccountSession
    from trunkline.workers.channels.approval_buttons import Button as Button
    from trunkline.workers.channels.approval_buttons import approval_buttons as approval_buttons
    from trunkline.workers.channels.approval_text import ApprovalDecision as ApprovalDecision
    from trunkline.workers.channels.approval_text import approval_news as approval_news
    from trunkline.workers.channels.approval_text import approval_words as approval_words
    from trunkline.workers.channels.approval_text import chosen as chosen
    from trunkline.workers.channels.approval_text import decision_news as decision_news
    from trunkline.workers.channels.approval_text import parse_decision as parse_decision
    from trunkline.workers.channels.approval_text import submit_decision as submit_decision
    from trunkline.workers.channels.approval_text import waiting_approval as waiting_approval
    from trunkline.workers.channels.attached_chats import ASKED as ASKED
    from trunkline.workers.channels.attached_chats import CHAT_KEY as CHAT_KEY
    from trunkline.workers.channels.attached_chats import AttachedChat as AttachedChat
    from trunkline.workers.channels.attached_chats import AttachedChats as AttachedChats
    from trunkline.workers.channels.attached_chats import describe_speaker as describe_speaker
    from trunkline.workers.channels.attached_chats import is_of_attached_chat as is_of_attached_chat
    from trunkline.workers.channels.attached_chats import quote_message as quote_message
    from trunkline.workers.channels.chat_account import ChatAccount as ChatAccount
    from trunkline.workers.channels.chat_channel import ChatChannel as ChatChannel
    from trunkline.workers.channels.chat_commands import command_menu as command_menu
    from trunkline.workers.channels.chat_commands import decide_by_words as decide_by_words
    from trunkline.workers.channels.chat_commands import parse_chat_command as parse_chat_command
    from trunkline.workers.channels.chat_message import ChatMessage as ChatMessage
    from trunkline.workers.channels.chat_posts import ChatPosts as ChatPosts
    from trunkline.workers.channels.chats import Chats as Chats
    from trunkline.workers.channels.chats import ChatState as ChatState
    from trunkline.workers.channels.context_text import describe_context as describe_context
    from trunkline.workers.channels.conversation_lookup import conversation_found as conversation_found
    from trunkline.workers.channels.delivery_ledger import DeliveryLedger as DeliveryLedger
    from trunkline.workers.channels.delivery_ledger import DeliveryState as DeliveryState
    from trunkline.workers.channels.delivery_ledger import OutboundDelivery as OutboundDelivery
    from trunkline.workers.channels.delivery_ledger import PostRefused as PostRefused
    from trunkline.workers.channels.delivery_ledger import PostService as PostService
    from trunkline.workers.channels.delivery_ledger import UnfinishedPost as UnfinishedPost
    from trunkline.workers.channels.http_listener import http_listener as http_listener
    from trunkline.workers.channels.incoming_files import FileRefused as FileRefused
    from trunkline.workers.channels.incoming_files import IncomingFile as IncomingFile
    from trunkline.workers.channels.incoming_files import message_with_files as message_with_files
    from trunkline.workers.channels.letter_channel import Letter as Letter
    from trunkline.workers.channels.letter_channel import LetterChannel as LetterChannel
    from trunkline.workers.channels.letter_channel import TurnText as TurnText
    from trunkline.workers.channels.letter_channel import file_contents as file_contents
    from trunkline.workers.channels.letter_channel import nothing_said as nothing_said
    from trunkline.workers.channels.model_command import DEFAULT_MODEL as DEFAULT_MODEL
    from trunkline.workers.channels.model_command import describe_answerer as describe_answerer
    from trunkline.workers.channels.model_command import describe_models as describe_models
    from trunkline.workers.channels.model_command import parse_model_command as parse_model_command
    from trunkline.workers.channels.model_command import run_model_command as run_model_command
    from trunkline.workers.channels.model_command import wanted_model as wanted_model
    from trunkline.workers.channels.styled_text import StyledSpan as StyledSpan
    from trunkline.workers.channels.styled_text import StyledText as StyledText
    from trunkline.workers.channels.styled_text import cut_text as cut_text
    from trunkline.workers.channels.styled_text import parse_markdown as parse_markdown
    from trunkline.workers.channels.styled_text import utf16_units as utf16_units
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
