"""The gateway's endpoints, and its conversation service.

``{channel}`` is the asker: a worker's credentials allow its own name there, so nobody can speak for another.
"""

from trunkline.messages.blocks import (
    ArchiveBlock,
    BlockList,
    BlockView,
    CreateBlock,
    DeleteBlock,
    ListBlocks,
    RestoreBlock,
    ShowBlock,
)
from trunkline.messages.conversation import (
    AppendConversation,
    ConversationAppended,
    ConversationPage,
    ConversationSlice,
    ListConversations,
    LoadConversation,
)
from trunkline.messages.gateway import (
    CancelTurn,
    ConversationView,
    Done,
    ForkTurn,
    GetConversation,
    GetTurn,
    MessageAccepted,
    SendMessage,
    TurnView,
)
from trunkline.messages.turn import ApprovalDecided
from trunkline_bus import (
    Endpoint,
    Subject,
)

SEND = Endpoint(
    "gateway.send", Subject("trunkline.cmd.gateway.{channel}.send"), SendMessage, MessageAccepted,
    doc="Hand in a message.",
)  # fmt: skip
GET_CONVERSATION = Endpoint(
    "gateway.conversation", Subject("trunkline.cmd.gateway.{channel}.conversation"), GetConversation,
    ConversationView, doc="A conversation with its messages.",
)  # fmt: skip
LIST_CONVERSATIONS = Endpoint(
    "gateway.conversations", Subject("trunkline.cmd.gateway.{channel}.conversations"), ListConversations,
    ConversationPage, doc="A page of conversations.",
)  # fmt: skip
CANCEL_TURN = Endpoint(
    "gateway.cancel", Subject("trunkline.cmd.gateway.{channel}.cancel"), CancelTurn, Done, doc="End a turn.",
)  # fmt: skip
FORK_TURN = Endpoint(
    "gateway.fork", Subject("trunkline.cmd.gateway.{channel}.fork"), ForkTurn, MessageAccepted,
    doc="Ask again from a step of a turn, in a new conversation.",
)  # fmt: skip
DECIDE_APPROVAL = Endpoint(
    "gateway.decide", Subject("trunkline.cmd.gateway.{channel}.decide"), ApprovalDecided, Done,
    doc="Decide about a parked tool call.",
)  # fmt: skip
GET_TURN = Endpoint(
    "gateway.turn", Subject("trunkline.cmd.gateway.{channel}.turn"), GetTurn, TurnView, doc="Where a turn stands.",
)  # fmt: skip
LIST_BLOCKS = Endpoint(
    "gateway.blocks", Subject("trunkline.cmd.gateway.{channel}.blocks.list"), ListBlocks, BlockList,
    doc="All blocks.",
)  # fmt: skip
SHOW_BLOCK = Endpoint(
    "gateway.block", Subject("trunkline.cmd.gateway.{channel}.blocks.show"), ShowBlock, BlockView, doc="One block.",
)  # fmt: skip
CREATE_BLOCK = Endpoint(
    "gateway.block-create", Subject("trunkline.cmd.gateway.{channel}.blocks.create"), CreateBlock, BlockView,
    doc="Make a block.",
)  # fmt: skip
ARCHIVE_BLOCK = Endpoint(
    "gateway.block-archive", Subject("trunkline.cmd.gateway.{channel}.blocks.archive"), ArchiveBlock, Done,
    doc="Put a block away.",
)  # fmt: skip
RESTORE_BLOCK = Endpoint(
    "gateway.block-restore", Subject("trunkline.cmd.gateway.{channel}.blocks.restore"), RestoreBlock, BlockView,
    doc="Bring a block back.",
)  # fmt: skip
DELETE_BLOCK = Endpoint(
    "gateway.block-delete", Subject("trunkline.cmd.gateway.{channel}.blocks.delete"), DeleteBlock, Done,
    doc="Delete a block.",
)  # fmt: skip
STORE_MESSAGES = Endpoint(
    "conversation.append", Subject("trunkline.cmd.conversation.append"), AppendConversation, ConversationAppended,
    doc="The gateway's conversation service: the only way messages get into a conversation.",
)  # fmt: skip
LOAD_MESSAGES = Endpoint(
    "conversation.load", Subject("trunkline.cmd.conversation.load"), LoadConversation, ConversationSlice,
    doc="A conversation's messages, for the monitor.",
)  # fmt: skip
