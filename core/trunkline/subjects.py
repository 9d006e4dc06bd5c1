"""The one table of what is said where: every endpoint and topic, with the streams and buckets that keep them.

The docs page, the NATS permissions in ``deploy/``, the stream filters and the span names are drawn from here.
``trunkline.<plane>.<area>.<key...>.<verb or fact>``; planes: ``cmd`` request and reply, ``turn`` the durable inbox,
``journal``, ``feed``, ``evt`` facts, ``ctl`` operators (never queued), ``x`` plugins' own, ``dead`` letters.
"""

from typing import Literal, TypeVar

from msgspec.structs import replace

from trunkline.messages.blocks import (
    ArchiveBlock,
    BlockList,
    BlockView,
    CreateBlock,
    DeleteBlock,
    ListBlocks,
    PulseBeat,
    RestoreBlock,
    ShowBlock,
)
from trunkline.messages.conversation import (
    AppendConversation,
    ConversationAppended,
    ConversationFound,
    ConversationPage,
    ConversationSlice,
    FindConversation,
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
from trunkline.messages.isolated import (
    Heard,
    ListOwnTools,
    MemoryAnswer,
    OwnTools,
    RunReply,
    RunTool,
)
from trunkline.messages.memory import (
    DeleteMemory,
    EditMemory,
    ExportMemory,
    ListMemory,
    MemoryChanged,
    MemoryChanges,
    MemoryExport,
    MemoryFile,
    MemoryFiles,
    MemoryHistory,
    MemoryHits,
    MemoryListing,
    MoveMemory,
    ReadManyMemory,
    ReadMemory,
    SearchMemory,
    WriteManyMemory,
    WriteMemory,
)
from trunkline.messages.tools import (
    Alive,
    AskAlive,
    CallTool,
    CancelCall,
    EffectRecord,
    ListTools,
    ToolCatalogue,
    ToolReply,
)
from trunkline.messages.turn import ApprovalDecided, FeedItem, InboxItem, TurnFact, TurnRecord
from trunkline.messages.workers import SpanBatch, WorkerBeat
from trunkline.retention import MEGABYTE, USUAL, Retention
from trunkline_bus import (
    BucketSpec,
    ConsumerSpec,
    DeadLetter,
    Endpoint,
    ObjectStoreSpec,
    StreamSpec,
    Subject,
    Topic,
    Topology,
    Transform,
)

PARTITIONS = 8
"""Into how many parts a new inbox is dealt. An old one is as its stream says (``runtime.partitions``)."""

DAY = 86_400.0

Storage = Literal["file", "memory"]
"""Where the server keeps a stream."""

# Streams -----------------------------------------------------------------------------------------------------

INBOX_STREAM, JOURNAL_STREAM, EFFECT_STREAM, FEED_STREAM = "INBOX", "JOURNAL", "EFFECT", "FEED"
SPAN_STREAM, FACT_STREAM, DEAD_STREAM = "SPANS", "FACTS", "DEAD"

# Turns -------------------------------------------------------------------------------------------------------

INBOX: Topic[InboxItem] = Topic(
    name="turn inbox",
    subject=Subject("trunkline.turn.inbox.{conversation}"),
    stored=Subject("trunkline.turn.part.{partition}.{conversation}"),
    payload=InboxItem,  # type: ignore[arg-type]
    stream=INBOX_STREAM,
    doc="What a turn is asked to do: messages, steering, cancels, decisions. Durable until done.",
)
MOVED: Topic[InboxItem] = Topic(
    name="moved inbox items",
    subject=Subject("trunkline.turn.moved.{conversation}"),
    stored=INBOX.stored,
    payload=InboxItem,  # type: ignore[arg-type]
    stream=INBOX_STREAM,
    doc="What waits in the inbox while that is dealt into another number of partitions; heard only meanwhile.",
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
    doc="Started and finished tool calls, so that none has its effect twice.",
)
FEED: Topic[FeedItem] = Topic(
    name="turn feed",
    subject=Subject("trunkline.feed.turn.{conversation}.{turn}"),
    payload=FeedItem,
    stream=FEED_STREAM,
    doc="What a turn shows while it runs.",
)
TURN_FACT: Topic[TurnFact] = Topic(
    name="turn facts",
    subject=Subject("trunkline.evt.turn.{block}.{fact}"),
    payload=TurnFact,
    stream=FACT_STREAM,
    doc="A turn started, parked or finished.",
)

# Gateway -----------------------------------------------------------------------------------------------------
# {channel} is the asker: a worker's credentials allow its own name there, so nobody can speak for another.

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

# Tools -------------------------------------------------------------------------------------------------------

LIST_TOOLS = Endpoint(
    "tools.list", Subject("trunkline.cmd.tools.list"), ListTools, ToolCatalogue, doc="The tools of a block.",
)  # fmt: skip
CALL_TOOL: Endpoint[CallTool, ToolReply] = Endpoint(
    "tools.call", Subject("trunkline.cmd.tools.call"), CallTool, ToolReply, streaming=True,  # type: ignore[arg-type]
    doc="Run a tool: signs of life, then the outcome.",
)  # fmt: skip
REMOTE_LIST = Endpoint(
    "remote.list", Subject("trunkline.cmd.remote.{remote}.list"), ListTools, ToolCatalogue,
    doc="The tools of another host. Served by that host, asked by the tools worker.",
)  # fmt: skip
REMOTE_CALL: Endpoint[CallTool, ToolReply] = Endpoint(
    "remote.call", Subject("trunkline.cmd.remote.{remote}.call"), CallTool, ToolReply, streaming=True,  # type: ignore[arg-type]
    doc="Run a tool on another host. Its own ledger makes a repeat harmless.",
)  # fmt: skip
TOOLS_ALIVE = Endpoint(
    "tools.alive", Subject("trunkline.cmd.tools.{worker}.alive"), AskAlive, Alive, traced=False,
    doc="Whether that tools worker is there. When nobody answers it is gone, and so is what it was running.",
)  # fmt: skip
CANCEL_CALL: Topic[CancelCall] = Topic(
    name="tool call cancel",
    subject=Subject("trunkline.ctl.tools.{call}.cancel"),
    payload=CancelCall,
    doc="Stop a tool call, wherever it runs. Heard by every tools worker.",
)

# Plugins in processes of their own -----------------------------------------------------------------------------
# {plugin} is who answers: its credentials let it hear its own name and nobody else's.

PLUGIN_TOOLS = Endpoint(
    "plugin.tools", Subject("trunkline.x.{plugin}.tools.list"), ListOwnTools, OwnTools, traced=False,
    doc="The tools of a plugin that runs in a process of its own.",
)  # fmt: skip
PLUGIN_RUN: Endpoint[RunTool, RunReply] = Endpoint(
    "plugin.run", Subject("trunkline.x.{plugin}.tools.run"), RunTool, RunReply, streaming=True,  # type: ignore[arg-type]
    doc="Run a checked call: signs of life, wishes about memory, pieces of the result, the end.",
)  # fmt: skip
PLUGIN_MEMORY = Endpoint(
    "plugin.memory", Subject("trunkline.x.{plugin}.tools.memory"), MemoryAnswer, Heard, traced=False,
    doc="The answer to a running tool's wish about memory.",
)  # fmt: skip

# Memory ------------------------------------------------------------------------------------------------------


Q = TypeVar("Q")
A = TypeVar("A")


def _memory(verb: str, request: type[Q], reply: type[A], doc: str) -> Endpoint[Q, A]:
    return Endpoint(f"memory.{verb}", Subject(f"trunkline.cmd.memory.{verb}"), request, reply, doc=doc)


MEMORY_READ = _memory("read", ReadMemory, MemoryFile, "A file's text.")
MEMORY_READ_MANY = _memory("read-many", ReadManyMemory, MemoryFiles, "Several small files.")
MEMORY_WRITE = _memory("write", WriteMemory, MemoryChanged, "Write a file.")
MEMORY_WRITE_MANY = _memory("write-many", WriteManyMemory, MemoryChanged, "Write files in one commit.")
MEMORY_EDIT = _memory("edit", EditMemory, MemoryChanged, "Replace text in a file.")
MEMORY_DELETE = _memory("delete", DeleteMemory, MemoryChanged, "Delete a file or folder.")
MEMORY_MOVE = _memory("move", MoveMemory, MemoryChanged, "Move a file or folder.")
MEMORY_SEARCH = _memory("search", SearchMemory, MemoryHits, "Search text or names.")
MEMORY_LIST = _memory("list", ListMemory, MemoryListing, "Names under a folder.")
MEMORY_HISTORY = _memory("history", MemoryHistory, MemoryChanges, "Changes of a path, with previous states.")
MEMORY_EXPORT = _memory("export", ExportMemory, MemoryExport, "Everything, in one archive.")
MEMORY_APPEND_CONVERSATION = _memory(
    "conversation-append", AppendConversation, ConversationAppended, "Append to a conversation."
)
MEMORY_LOAD_CONVERSATION = _memory(
    "conversation-load", LoadConversation, ConversationSlice, "Read a conversation."
)
MEMORY_LIST_CONVERSATIONS = _memory(
    "conversation-list", ListConversations, ConversationPage, "A page of conversations."
)
MEMORY_FIND_CONVERSATION = _memory(
    "conversation-find", FindConversation, ConversationFound, "Which block holds a conversation."
)

MEMORY_CHANGED: Topic[MemoryChanged] = Topic(
    name="memory changes", subject=Subject("trunkline.evt.memory.{part}.changed"), payload=MemoryChanged,
    doc="A commit was made, of ``conversations`` alone or of other ``files`` too.",
)  # fmt: skip

# Traces ------------------------------------------------------------------------------------------------------

SPANS: Topic[SpanBatch] = Topic(
    name="spans", subject=Subject("trunkline.evt.trace.{trace}.spans"), payload=SpanBatch, stream=SPAN_STREAM,
    doc="Finished spans, by trace.",
)  # fmt: skip

# Buckets -----------------------------------------------------------------------------------------------------

PULSE_BUCKET: BucketSpec[PulseBeat] = BucketSpec(name="pulse", payload=PulseBeat, ttl=5.0, storage="memory")
WORKER_BUCKET: BucketSpec[WorkerBeat] = BucketSpec(
    name="workers", payload=WorkerBeat, ttl=4.0, storage="memory"
)
EXPORTS = ObjectStoreSpec(name="exports", ttl=3_600.0)
CLAIMS = ObjectStoreSpec(name="claims")

DEAD_LETTERS = "trunkline.dead.letters"
"""Where messages go that could not be decoded or handled, with the reason."""

DEAD: Topic[DeadLetter] = Topic(
    name="dead letters", subject=Subject(DEAD_LETTERS), payload=DeadLetter, stream=DEAD_STREAM,
    doc="What could not be decoded or handled, with the reason and its bytes.",
)  # fmt: skip

# Consumers ---------------------------------------------------------------------------------------------------

PIN_GROUP = "monitors"

FAILOVER = 1.2
"""Seconds of silence after which a monitor's partitions, and what it was given of them, are another's. As long as a
person waits when it dies; a monitor that stands still for as long costs a second model call, and nothing else."""


def inbox_consumer(partition: int) -> ConsumerSpec:
    """The consumer of one partition: the server pins it to one live monitor, and to another when that one dies."""
    return ConsumerSpec(
        stream=INBOX_STREAM,
        name=f"part-{partition}",
        filter=f"trunkline.turn.part.{partition}.*",
        ack_wait=FAILOVER,
        max_ack_pending=10_000,
        pinned_group=PIN_GROUP,
        pin_timeout=FAILOVER,
    )


EVERY_PARTITION = replace(inbox_consumer(0), name="*", filter="trunkline.turn.part.*.*")
"""All of their consumers at once, in the words of permissions."""


def inbox_transform(door: str, partitions: int) -> Transform:
    """Deal what comes under ``door`` by conversation."""
    return Transform(
        source=door,
        destination=f"trunkline.turn.part.{{{{partition({partitions},1)}}}}.{{{{wildcard(1)}}}}",
    )


STREAMS = (
    StreamSpec(
        name=INBOX_STREAM,
        subjects=("trunkline.turn.inbox.*",),
        retention="workqueue",
        transform=inbox_transform("trunkline.turn.inbox.*", PARTITIONS),
        duplicate_window=600.0,
        discard="new",
        description="Accepted messages, until they are answered",
    ),
    StreamSpec(
        name=JOURNAL_STREAM,
        subjects=("trunkline.journal.turn.*.*",),
        duplicate_window=600.0,
        description="The journal of every turn",
    ),
    StreamSpec(
        name=EFFECT_STREAM,
        subjects=("trunkline.journal.effect.*",),
        duplicate_window=600.0,
        description="The effect ledger",
    ),
    StreamSpec(
        name=FEED_STREAM,
        subjects=("trunkline.feed.turn.*.*",),
        persist_async=True,
        description="What turns show while they run",
    ),
    StreamSpec(
        name=FACT_STREAM,
        subjects=("trunkline.evt.turn.*.*",),
        description="Facts about turns",
    ),
    StreamSpec(
        name=SPAN_STREAM,
        subjects=("trunkline.evt.trace.*.spans",),
        persist_async=True,
        description="Finished spans",
    ),
    StreamSpec(
        name=DEAD_STREAM,
        subjects=("trunkline.dead.*",),
        description="What could not be decoded or handled",
    ),
)
"""What the server keeps. ``topology`` gives them the replicas, ages and sizes that are configured."""


def topology(
    *,
    replicas: int = 1,
    retention: Retention = USUAL,
    feed: Storage = "file",
) -> Topology:
    """All that the platform keeps on the server; ``apply()`` brings it there. ``feed`` is where the feed is kept.

    What may be asked for again is stored asynchronously, but only in files and without replicas: the server knows no
    both.
    """
    limits = _limits(retention)
    stored: dict[str, Storage] = {FEED_STREAM: feed}

    def kept(stream: StreamSpec) -> StreamSpec:
        storage = stored.get(stream.name, stream.storage)
        return replace(
            stream,
            replicas=replicas,
            storage=storage,
            max_age=limits[stream.name][0],
            max_bytes=int(limits[stream.name][1] * MEGABYTE),
            persist_async=stream.persist_async and replicas == 1 and storage == "file",
        )

    return Topology(
        streams=tuple(map(kept, STREAMS)),
        consumers=tuple(inbox_consumer(partition) for partition in range(PARTITIONS)),
        buckets=tuple(replace(bucket, replicas=replicas) for bucket in (PULSE_BUCKET, WORKER_BUCKET)),
        objects=tuple(replace(store, replicas=replicas) for store in (EXPORTS, claims_store(retention))),
    )


def remote_topology(retention: Retention = USUAL) -> Topology:
    """What a remote keeps on its own server: the ledger of its calls, who lives, and what it could not read."""
    whole = topology(retention=retention)
    streams = tuple(stream for stream in whole.streams if stream.name in (EFFECT_STREAM, DEAD_STREAM))
    claims = tuple(store for store in whole.objects if store.name == CLAIMS.name)
    return Topology(streams=streams, buckets=(WORKER_BUCKET,), objects=claims)


def claims_store(retention: Retention) -> ObjectStoreSpec:
    """Where bodies lie that are too large for a message, for as long as anything may name one."""
    return replace(CLAIMS, ttl=retention.body_days * DAY, max_bytes=int(retention.body_mb * MEGABYTE))


def _limits(retention: Retention) -> dict[str, tuple[float | None, float]]:
    """Age in seconds and size in megabytes of each stream."""
    return {
        INBOX_STREAM: (None, retention.inbox_mb),
        JOURNAL_STREAM: (retention.journal_days * DAY, retention.journal_mb),
        EFFECT_STREAM: (retention.journal_days * DAY, retention.effect_mb),
        FEED_STREAM: (retention.feed_hours * 3_600.0, retention.feed_mb),
        FACT_STREAM: (retention.fact_days * DAY, retention.fact_mb),
        SPAN_STREAM: (retention.trace_days * DAY, retention.trace_mb),
        DEAD_STREAM: (retention.dead_days * DAY, retention.dead_mb),
    }
