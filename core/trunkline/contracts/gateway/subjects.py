"""The gateway's endpoints, and its conversation service.

``{channel}`` is the asker: a worker's credentials allow its own name there, so nobody can speak for another.
"""

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
from trunkline.contracts.conversations.messages import (
    AppendConversation,
    ConversationAppended,
    ConversationFound,
    ConversationPage,
    ConversationSlice,
    ListConversations,
    LoadConversation,
)
from trunkline.contracts.gateway.answerer import Answerer, GetAnswerer
from trunkline.contracts.gateway.messages import (
    CancelTurn,
    ClientRequest,
    CommandSucceeded,
    ConversationView,
    ForkTurn,
    GetConversation,
    GetTurn,
    MessageAccepted,
    RenameConversation,
    SendMessage,
    TranscriptHead,
    TurnView,
)
from trunkline.contracts.turns.messages import ApprovalDecided
from trunkline_bus import (
    BucketSpec,
    Endpoint,
    Subject,
)

SEND_MESSAGE = Endpoint(
    "gateway.send", Subject("trunkline.cmd.gateway.{channel}.send"), SendMessage, MessageAccepted,
    doc="Hand in a message.",
)  # fmt: skip
TRANSCRIPT_BUCKET: BucketSpec[TranscriptHead] = BucketSpec(
    name="transcripts",
    payload=TranscriptHead,
    ttl=30 * 86_400.0,
    max_bytes=64 * 1024 * 1024,
    description="Which conversation an OpenAI client's transcript goes on with, by the hash of its messages",
)
REQUEST_BUCKET: BucketSpec[ClientRequest] = BucketSpec(
    name="requests",
    payload=ClientRequest,
    ttl=3_600.0,
    max_bytes=16 * 1024 * 1024,
    description="The id of an OpenAI client's request, by the hash of its messages, for its repeats",
)
GET_CONVERSATION = Endpoint(
    "gateway.conversation", Subject("trunkline.cmd.gateway.{channel}.conversation"), GetConversation,
    ConversationView, root=False, doc="A conversation with its messages.",
)  # fmt: skip
LIST_CONVERSATIONS = Endpoint(
    "gateway.conversations", Subject("trunkline.cmd.gateway.{channel}.conversations"), ListConversations,
    ConversationPage, root=False, doc="A page of conversations.",
)  # fmt: skip
RENAME_CONVERSATION = Endpoint(
    "gateway.conversation-rename", Subject("trunkline.cmd.gateway.{channel}.rename"), RenameConversation,
    ConversationFound, doc="Give a conversation a title.",
)  # fmt: skip
CANCEL_TURN = Endpoint(
    "gateway.cancel", Subject("trunkline.cmd.gateway.{channel}.cancel"), CancelTurn, CommandSucceeded,
    doc="End a turn.",
)  # fmt: skip
FORK_TURN = Endpoint(
    "gateway.fork", Subject("trunkline.cmd.gateway.{channel}.fork"), ForkTurn, MessageAccepted,
    doc="Repeat a turn from one of its steps, in a new conversation.",
)  # fmt: skip
DECIDE_APPROVAL = Endpoint(
    "gateway.decide", Subject("trunkline.cmd.gateway.{channel}.decide"), ApprovalDecided, CommandSucceeded,
    doc="Decide about a parked tool call.",
)  # fmt: skip
GET_TURN = Endpoint(
    "gateway.turn", Subject("trunkline.cmd.gateway.{channel}.turn"), GetTurn, TurnView, root=False,
    doc="Where a turn stands.",
)  # fmt: skip
GET_ANSWERER = Endpoint(
    "gateway.answerer", Subject("trunkline.cmd.gateway.{channel}.answerer"), GetAnswerer, Answerer, root=False,
    doc="Who answers in a block.",
)  # fmt: skip
LIST_BLOCKS = Endpoint(
    "gateway.blocks", Subject("trunkline.cmd.gateway.{channel}.blocks.list"), ListBlocks, BlockList,
    root=False, doc="All blocks.",
)  # fmt: skip
SHOW_BLOCK = Endpoint(
    "gateway.block", Subject("trunkline.cmd.gateway.{channel}.blocks.show"), ShowBlock, BlockView, root=False,
    doc="One block.",
)  # fmt: skip
CREATE_BLOCK = Endpoint(
    "gateway.block-create", Subject("trunkline.cmd.gateway.{channel}.blocks.create"), CreateBlock, BlockView,
    doc="Make a block.",
)  # fmt: skip
CHANGE_BLOCK = Endpoint(
    "gateway.block-change", Subject("trunkline.cmd.gateway.{channel}.blocks.change"), ChangeBlock, BlockView,
    doc="Change a block's choices.",
)  # fmt: skip
STOP_BLOCK = Endpoint(
    "gateway.block-stop", Subject("trunkline.cmd.gateway.{channel}.blocks.stop"), StopBlock, BlockStopped,
    doc="Switch a block off and cancel its turns.",
)  # fmt: skip
RESET_BLOCK = Endpoint(
    "gateway.block-reset", Subject("trunkline.cmd.gateway.{channel}.blocks.reset"), ResetBlock, BlockView,
    doc="Have a block forget.",
)  # fmt: skip
ARCHIVE_BLOCK = Endpoint(
    "gateway.block-archive", Subject("trunkline.cmd.gateway.{channel}.blocks.archive"), ArchiveBlock, CommandSucceeded,
    doc="Put a block away.",
)  # fmt: skip
RESTORE_BLOCK = Endpoint(
    "gateway.block-restore", Subject("trunkline.cmd.gateway.{channel}.blocks.restore"), RestoreBlock, BlockView,
    doc="Bring a block back.",
)  # fmt: skip
DELETE_BLOCK = Endpoint(
    "gateway.block-delete", Subject("trunkline.cmd.gateway.{channel}.blocks.delete"), DeleteBlock, CommandSucceeded,
    doc="Delete a block and cancel its turns.",
)  # fmt: skip
STORE_MESSAGES = Endpoint(
    "conversation.append", Subject("trunkline.cmd.conversation.append"), AppendConversation, ConversationAppended,
    root=False, doc="The gateway's conversation service: the only way messages get into a conversation.",
)  # fmt: skip
LOAD_MESSAGES = Endpoint(
    "conversation.load", Subject("trunkline.cmd.conversation.load"), LoadConversation, ConversationSlice,
    root=False, doc="A conversation's messages, for the monitor.",
)  # fmt: skip
