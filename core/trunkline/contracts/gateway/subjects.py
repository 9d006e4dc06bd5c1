"""The gateway's operations as one table, its conversation endpoints and its buckets."""

from typing import Any

from trunkline.contracts.agents.messages import AgentList, EndAgent, ListAgents
from trunkline.contracts.approvals.messages import (
    ApprovalList,
    ApprovalView,
    ForgetGrant,
    GetApproval,
    GrantList,
    ListApprovals,
    ListGrants,
)
from trunkline.contracts.auth.linked_senders import (
    GetLinkedSenders,
    LinkedSenderList,
    LinkSender,
    SenderLinked,
)
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.blocks.messages import (
    ArchiveBlock,
    BlockList,
    BlockStopped,
    BlockView,
    ChangeBlock,
    CreateBlock,
    DeleteBlock,
    ListBlocks,
    ResetBlock,
    RestoreBlock,
    ShowBlock,
    StopBlock,
)
from trunkline.contracts.blocks.notice_preferences import GetNoticePreferences, NoticePreferencesFound
from trunkline.contracts.blocks.templates import BlockTemplateList, ListBlockTemplates
from trunkline.contracts.conversations.branch import ConversationBranches
from trunkline.contracts.conversations.messages import (
    AppendConversation,
    ConversationAppended,
    ConversationFound,
    ConversationPage,
    ConversationSlice,
    ListConversations,
    LoadConversation,
)
from trunkline.contracts.costs.report_messages import CostTotals, GetCosts
from trunkline.contracts.gateway.answerer import Answerer, ChooseModel, GetAnswerer
from trunkline.contracts.gateway.messages import (
    CancelTurn,
    ChangeConversation,
    ClientRequest,
    CommandSucceeded,
    ConversationExport,
    ConversationView,
    DeletedResponse,
    ExportConversation,
    FilePiece,
    ForkTurn,
    GetBranches,
    GetConversation,
    GetFile,
    GetTurn,
    MessageAccepted,
    SendMessage,
    TranscriptHead,
    TurnView,
)
from trunkline.contracts.gateway.operation import GatewayOperation, command, query
from trunkline.contracts.gateway.ticket import TICKET_BUCKET as TICKET_BUCKET
from trunkline.contracts.models.listing import ListModels, ModelListings
from trunkline.contracts.turns.context_view import ContextView, GetContext
from trunkline.contracts.turns.messages import ApprovalDecided
from trunkline_bus import (
    BucketSpec,
    Endpoint,
    ObjectStoreSpec,
    Subject,
)

SEND_MESSAGE = command(
    "send", SendMessage, MessageAccepted, "Accept a message into the inbox.", scope=TokenScope.CHAT
)
FORK_TURN = command(
    "fork",
    ForkTurn,
    MessageAccepted,
    "Repeat a turn from one of its steps, in a new conversation.",
    scope=TokenScope.CHAT,
)
CANCEL_TURN = command("cancel", CancelTurn, CommandSucceeded, "End a turn.", scope=TokenScope.CHAT)
GET_TURN = query("turn", GetTurn, TurnView, "The state of a turn.")
DECIDE_APPROVAL = command(
    "decide",
    ApprovalDecided,
    CommandSucceeded,
    "Decide about a parked tool call.",
    scope=TokenScope.APPROVE,
)
LIST_APPROVALS = query(
    "approvals.list", ListApprovals, ApprovalList, "The approvals that wait for a decision."
)
GET_APPROVAL = query(
    "approvals.show", GetApproval, ApprovalView, "One approval, with the arguments of its call."
)
LIST_GRANTS = query(
    "approvals.granted", ListGrants, GrantList, "The grants: permissions that outlive one call."
)
FORGET_GRANT = command("approvals.forget", ForgetGrant, CommandSucceeded, "Revoke a grant.")
GET_CONVERSATION = query(
    "conversation", GetConversation, ConversationView, "A conversation with its messages."
)
LIST_CONVERSATIONS = query("conversations", ListConversations, ConversationPage, "A page of conversations.")
CHANGE_CONVERSATION = command(
    "conversations.change",
    ChangeConversation,
    ConversationFound,
    "Name, pin or archive a conversation.",
    scope=TokenScope.CHAT,
)
GET_BRANCHES = query(
    "conversations.branches", GetBranches, ConversationBranches, "Where a conversation and its forks part."
)
EXPORT_CONVERSATION = query(
    "conversations.export", ExportConversation, ConversationExport, "A conversation as one text."
)
GET_FILE = query("file", GetFile, FilePiece, "A file of a message, in pieces.")
GET_CONTEXT = query("context", GetContext, ContextView, "What a model was sent in a turn, part by part.")
GET_ANSWERER = query(
    "answerer", GetAnswerer, Answerer, "The model that answers in a block or a conversation."
)
CHOOSE_MODEL = command(
    "choose-model",
    ChooseModel,
    Answerer,
    "Choose the model of a conversation.",
    scope=TokenScope.OPERATE,
)
GET_MODELS = query(
    "models", ListModels, ModelListings, "The models that can be asked.", scope=TokenScope.OPERATE
)
GET_NOTICE_PREFERENCES = query(
    "notices",
    GetNoticePreferences,
    NoticePreferencesFound,
    "How the owner wants to be told of approvals and more.",
)
GET_COSTS = query("costs", GetCosts, CostTotals, "What models cost since a time.")
LINK_SENDER = command(
    "senders.link", LinkSender, SenderLinked, "Link the sender of a pairing code to the owner."
)
GET_SENDERS = query(
    "senders", GetLinkedSenders, LinkedSenderList, "The people of the channel's service who are the owner."
)
LIST_AGENTS = query("agents", ListAgents, AgentList, "Agents that work for other agents, and their tasks.")
END_AGENT = command(
    "agents.end", EndAgent, CommandSucceeded, "End an agent or cancel a task.", scope=TokenScope.OPERATE
)
LIST_BLOCKS = query("blocks.list", ListBlocks, BlockList, "All blocks.")
SHOW_BLOCK = query("blocks.show", ShowBlock, BlockView, "One block.")
LIST_BLOCK_TEMPLATES = query(
    "blocks.templates",
    ListBlockTemplates,
    BlockTemplateList,
    "What a new block can begin with.",
    scope=TokenScope.OPERATE,
)

# Only the operator may call these: a block's settings decide what its agent may do, so no program that the agent runs
# may change them.
CREATE_BLOCK = command(
    "blocks.create", CreateBlock, BlockView, "Create a block.", callers="operator", scope=TokenScope.OPERATE
)
CHANGE_BLOCK = command(
    "blocks.change",
    ChangeBlock,
    BlockView,
    "Change a block's choices.",
    callers="operator",
    scope=TokenScope.OPERATE,
)
STOP_BLOCK = command(
    "blocks.stop",
    StopBlock,
    BlockStopped,
    "Switch a block off and cancel its turns.",
    callers="operator",
    scope=TokenScope.OPERATE,
)
RESET_BLOCK = command(
    "blocks.reset",
    ResetBlock,
    BlockView,
    "Remove a block's conversations and what its agent wrote or learned.",
    callers="operator",
    scope=TokenScope.OPERATE,
)
ARCHIVE_BLOCK = command(
    "blocks.archive",
    ArchiveBlock,
    CommandSucceeded,
    "Archive a block.",
    callers="operator",
    scope=TokenScope.OPERATE,
)
RESTORE_BLOCK = command(
    "blocks.restore",
    RestoreBlock,
    BlockView,
    "Restore an archived block.",
    callers="operator",
    scope=TokenScope.OPERATE,
)
DELETE_BLOCK = command(
    "blocks.delete",
    DeleteBlock,
    CommandSucceeded,
    "Delete a block and cancel its turns.",
    callers="operator",
)

GATEWAY_OPERATIONS: tuple[GatewayOperation[Any, Any], ...] = tuple(
    value for value in tuple(globals().values()) if isinstance(value, GatewayOperation)
)
"""All operations of the gateway. A channel can call no other operation."""

TRANSCRIPT_BUCKET: BucketSpec[TranscriptHead] = BucketSpec(
    name="transcripts",
    payload=TranscriptHead,
    ttl=30 * 86_400.0,
    max_bytes=64 * 1024 * 1024,
    description="Which conversation an OpenAI client's transcript continues, by the hash of its messages",
)
REQUEST_BUCKET: BucketSpec[ClientRequest] = BucketSpec(
    name="requests",
    payload=ClientRequest,
    ttl=3_600.0,
    max_bytes=16 * 1024 * 1024,
    description="The id of an OpenAI client's request, by the hash of its messages, for its repeats",
)
DELETED_RESPONSE_BUCKET: BucketSpec[DeletedResponse] = BucketSpec(
    name="deleted-responses",
    payload=DeletedResponse,
    max_bytes=16 * 1024 * 1024,
    description="The turns whose responses a client deleted",
)
FILE_STORE = ObjectStoreSpec(name="files", description="Files that clients uploaded for their messages")
STORE_MESSAGES = Endpoint(
    "conversation.append", Subject("trunkline.cmd.conversation.append"), AppendConversation, ConversationAppended,
    root=False, doc="The gateway's conversation service: the only way messages get into a conversation.",
)  # fmt: skip
LOAD_MESSAGES = Endpoint(
    "conversation.load", Subject("trunkline.cmd.conversation.load"), LoadConversation, ConversationSlice,
    root=False, doc="A conversation's messages, for the monitor.",
)  # fmt: skip
