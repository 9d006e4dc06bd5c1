"""What each kind of process does on the bus, in terms of ``contracts.subjects``. A table: no NATS subjects in here.

A new endpoint, topic or bucket is denied to everybody until it stands here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from trunkline.contracts import subjects as s
from trunkline_bus import BucketSpec, ConsumerSpec, Endpoint, ObjectStoreSpec, Topic

Endpoints = tuple[Endpoint[Any, Any], ...]
Topics = tuple[Topic[Any], ...]

GATEWAY_DOORS: Endpoints = (
    s.SEND, s.GET_CONVERSATION, s.LIST_CONVERSATIONS, s.RENAME_CONVERSATION, s.CANCEL_TURN, s.DECIDE_APPROVAL,
    s.GET_TURN, s.FORK_TURN, s.LIST_BLOCKS, s.SHOW_BLOCK, s.LIST_APPROVALS, s.GET_APPROVAL,
    s.LIST_GRANTS, s.FORGET_GRANT, s.GET_ANSWERER,
)  # fmt: skip
"""What every channel may ask of the gateway."""

BLOCK_CHANGES: Endpoints = (
    s.CREATE_BLOCK, s.CHANGE_BLOCK, s.STOP_BLOCK, s.RESET_BLOCK, s.ARCHIVE_BLOCK, s.RESTORE_BLOCK, s.DELETE_BLOCK,
)  # fmt: skip
"""The owner's alone: what an agent may do stands in a block's choices, so nothing that it runs may ask for this."""

BLOCK_MEMORY: Endpoints = (
    s.MEMORY_READ, s.MEMORY_WRITE, s.MEMORY_EDIT, s.MEMORY_DELETE, s.MEMORY_SEARCH, s.MEMORY_LIST, s.MEMORY_HISTORY,
    s.MEMORY_BLAME, s.MEMORY_DIFF, s.MEMORY_REVERT,
    s.MEMORY_REMEMBER, s.MEMORY_RECALL, s.MEMORY_CHUNK, s.MEMORY_CHUNKS, s.MEMORY_LINKED, s.MEMORY_LINK,
    s.MEMORY_UPDATE_CHUNK, s.MEMORY_FORGET,
)  # fmt: skip
"""What the ``Memory`` that tools and context sources are given asks for."""

COLLECTED: Endpoints = (
    s.MEMORY_COLLECT, s.MEMORY_COLLECTED, s.MEMORY_COLLECTED_SEARCH, s.MEMORY_COLLECTED_CLEAR,
)  # fmt: skip
"""The documents of a conversation."""

CHUNK_CARE: Endpoints = (
    s.MEMORY_REMEMBER, s.MEMORY_RECALL, s.MEMORY_CHUNK, s.MEMORY_CHUNKS, s.MEMORY_LINKED, s.MEMORY_LINK,
    s.MEMORY_UPDATE_CHUNK, s.MEMORY_FORGET, s.MEMORY_DELETE_CHUNK, s.MEMORY_RESTORE_CHUNK, s.MEMORY_PRUNE,
    s.MEMORY_CHUNK_STATS, s.MEMORY_PURGE,
)  # fmt: skip
"""What the owner does with chunks. To rewrite history is the owner's alone."""

MEMORY_SERVICE: Endpoints = (
    *BLOCK_MEMORY, *COLLECTED, s.MEMORY_READ_MANY, s.MEMORY_WRITE_MANY, s.MEMORY_MOVE, s.MEMORY_EXPORT,
    s.MEMORY_EXAMINE, s.MEMORY_IMPORT, s.MEMORY_INDEX_STATS, s.MEMORY_REINDEX,
    s.MEMORY_APPEND_CONVERSATION, s.MEMORY_LOAD_CONVERSATION, s.MEMORY_LIST_CONVERSATIONS, s.MEMORY_FIND_CONVERSATION,
    s.MEMORY_DELETE_CHUNK, s.MEMORY_RESTORE_CHUNK, s.MEMORY_PRUNE, s.MEMORY_CHUNK_STATS, s.MEMORY_PURGE,
)  # fmt: skip

PLUGIN_DOORS: Endpoints = (s.PLUGIN_TOOLS, s.PLUGIN_RUN, s.PLUGIN_MEMORY)
"""What a plugin in a process of its own answers."""

FEED_READER: tuple[str, ...] = (s.FEED_STREAM, s.JOURNAL_STREAM, s.INBOX_STREAM)
"""The streams that ``contracts/turns/feed_reader.py`` reads to show a turn without a gap."""

CHANNEL_READER: tuple[str, ...] = (*FEED_READER, s.APPROVAL_STREAM)
"""The streams that a channel is shown turns and approvals from."""


@dataclass(frozen=True, kw_only=True)
class Role:
    """One kind of process; ``name`` is its NATS user.

    ``serves`` and ``calls`` are endpoints, ``says`` topics it publishes or stores, ``hears`` topics it listens to.
    ``reads`` are streams that it reads stored messages of, ``removes`` those it deletes single messages of, and
    ``consumes`` the consumers it pulls from. ``measures`` are streams whose settings it may see. ``keeps`` are
    buckets it writes, ``looks`` those it reads. ``brings`` are object buckets it puts objects in, ``fetches`` those
    whose objects it reads and deletes. ``channels`` are the names under which it speaks to the gateway. ``lends`` are
    the agent and the block under whose names it calls tools. ``keys``
    are parts of what it serves that it serves under one value alone. ``discovers`` lets it ask services who they
    are, ``watches`` lets it see the settings and sizes of every stream. ``prepares`` lets it make and change
    streams and nothing else. ``away``: it runs on a leaf node with streams of its own, or apart, so it has nothing
    of ours but what stands in the fields above. ``answers`` lets it reply to whatever it is asked.
    """

    name: str
    serves: Endpoints = ()
    calls: Endpoints = ()
    says: Topics = ()
    hears: Topics = ()
    reads: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    consumes: tuple[ConsumerSpec, ...] = ()
    measures: tuple[str, ...] = ()
    keeps: tuple[BucketSpec[Any], ...] = ()
    looks: tuple[BucketSpec[Any], ...] = ()
    brings: tuple[ObjectStoreSpec, ...] = ()
    fetches: tuple[ObjectStoreSpec, ...] = ()
    channels: tuple[str, ...] = ()
    lends: tuple[tuple[str, str], ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    worker: bool = True
    discovers: bool = False
    watches: bool = False
    prepares: bool = False
    away: bool = False
    answers: bool = False


GATEWAY = Role(
    name="gateway",
    serves=(*GATEWAY_DOORS, *BLOCK_CHANGES, s.STORE_MESSAGES, s.LOAD_MESSAGES),
    calls=(
        s.MEMORY_READ_MANY, s.MEMORY_WRITE_MANY, s.MEMORY_LIST, s.MEMORY_MOVE, s.MEMORY_DELETE, s.MEMORY_HISTORY,
        s.MEMORY_APPEND_CONVERSATION, s.MEMORY_LOAD_CONVERSATION, s.MEMORY_LIST_CONVERSATIONS,
        s.MEMORY_FIND_CONVERSATION, s.ANSWERER, s.TOOLS_END,
    ),
    says=(s.INBOX, s.APPROVAL, s.AUDIT),
    hears=(s.FEED, s.APPROVAL, s.MEMORY_CHANGED),
    reads=CHANNEL_READER,
    consumes=(s.DEADLINES,),
    keeps=(s.TRANSCRIPTS, s.REQUESTS),
    looks=(s.WORKER_BUCKET, s.PULSE_BUCKET, s.TRANSCRIPTS, s.REQUESTS),
    watches=True,  # /metrics tells how full the streams are
)  # fmt: skip

MONITOR = Role(
    name="monitor",
    serves=(s.COMPLETE, s.ANSWERER),
    calls=(
        s.COMPLETE,  # background work in its lifespans
        s.STORE_MESSAGES, s.LOAD_MESSAGES, s.LIST_TOOLS, s.CALL_TOOL, s.CALL_DECIDED, s.MEMORY_READ_MANY, *BLOCK_MEMORY,
        s.MEMORY_WRITE_MANY,  # what a learner learns from one turn is one commit
    ),
    says=(s.JOURNAL, s.FEED, s.TURN_FACT, s.CANCEL_CALL, s.APPROVAL, s.APPROVAL_TIMER, s.AUDIT, s.STOPPED),
    hears=(s.MEMORY_CHANGED, s.PANIC),
    reads=(s.INBOX_STREAM, s.JOURNAL_STREAM, s.FEED_STREAM, s.APPROVAL_STREAM, s.SPAN_STREAM),
    removes=(s.INBOX_STREAM,),
    consumes=(s.EVERY_PARTITION, s.LEARNER),
    measures=(s.INBOX_STREAM,),
    keeps=(s.PULSE_BUCKET,),
    looks=(s.WORKER_BUCKET,),
)  # fmt: skip

TOOLS = Role(
    name="tools",
    serves=(s.LIST_TOOLS, s.CALL_TOOL, s.CALL_DECIDED, s.TOOLS_ALIVE, s.TOOLS_END, s.LENT_LIST, s.LENT_CALL),
    calls=(
        *BLOCK_MEMORY,
        *COLLECTED,
        s.MEMORY_READ_MANY,
        s.MEMORY_WRITE_MANY,
        s.MEMORY_EXPORT,
        s.MEMORY_IMPORT,
        s.MEMORY_LOAD_CONVERSATION,  # what a conversation was forked from, and whether it is still there
        s.COMPLETE,
        s.REMOTE_LIST,
        s.REMOTE_CALL,
        s.TOOLS_ALIVE,
        *PLUGIN_DOORS,
        s.TELL_OWNER,
    ),
    says=(s.EFFECT, s.AUDIT, s.STOPPED),
    hears=(s.EFFECT, s.CANCEL_CALL, s.LENT_CANCEL, s.PANIC, s.MEMORY_CHANGED),
    reads=(s.EFFECT_STREAM,),
    keeps=(s.QUOTA_BUCKET,),
    looks=(s.WORKER_BUCKET, s.QUOTA_BUCKET),
    brings=(s.IMPORTS, s.RESULTS),
    fetches=(s.EXPORTS, s.RESULTS),
)

PURGED: tuple[str, ...] = (
    s.JOURNAL_STREAM, s.FEED_STREAM, s.EFFECT_STREAM, s.FACT_STREAM, s.APPROVAL_STREAM, s.SPAN_STREAM, s.DEAD_STREAM,
    s.RESULTS.stream_name, s.CLAIMS.stream_name, s.TRANSCRIPTS.stream_name,
)  # fmt: skip
"""The streams and stores out of which a purge takes what a conversation left there."""

MEMORY = Role(
    name="memory",
    serves=MEMORY_SERVICE,
    says=(s.MEMORY_CHANGED,),
    reads=(s.AUDIT_STREAM, s.INBOX_STREAM, s.TIMER_STREAM, *PURGED),
    removes=(s.AUDIT_STREAM, *PURGED),
    brings=(s.EXPORTS,),
    fetches=(s.IMPORTS,),
)

OPERATOR = Role(
    name="operator",
    calls=(
        *GATEWAY_DOORS, *BLOCK_CHANGES, s.MEMORY_READ, s.MEMORY_SEARCH, s.MEMORY_LIST, s.MEMORY_HISTORY,
        s.MEMORY_BLAME, s.MEMORY_DIFF, s.MEMORY_REVERT, s.MEMORY_READ_MANY, s.MEMORY_WRITE_MANY, s.MEMORY_DELETE,
        s.MEMORY_EXAMINE, s.MEMORY_EXPORT, s.MEMORY_IMPORT, s.MEMORY_INDEX_STATS, s.MEMORY_REINDEX,
        s.REMOTE_LIST, *CHUNK_CARE,
        s.LIST_TOOLS,  # `trunkline policies add` says when there is no such tool
    ),
    says=(s.INBOX, s.AUDIT, s.PANIC),  # `trunkline dead retry` puts a message back
    hears=(s.FEED, s.APPROVAL, s.STOPPED),
    reads=(
        *CHANNEL_READER, s.FACT_STREAM, s.SPAN_STREAM, s.AUDIT_STREAM, s.DEAD_STREAM,
        s.RESULTS.stream_name,  # `trunkline results`
    ),
    removes=(s.DEAD_STREAM,),
    looks=(s.WORKER_BUCKET, s.PULSE_BUCKET),
    brings=(s.IMPORTS,),
    fetches=(s.EXPORTS,),
    channels=("cli", "terminal"),
    worker=False,
    discovers=True,
    watches=True,
)  # fmt: skip

STREAMS = Role(
    name="streams",
    says=(s.MOVED,),  # `trunkline partitions` deals what waits in the inbox anew
    reads=(s.INBOX_STREAM,),
    removes=(s.INBOX_STREAM,),
    looks=(s.WORKER_BUCKET,),
    worker=False,
    prepares=True,
)


def channel(name: str) -> Role:
    """The channels worker that runs the channel ``name`` and speaks for no other."""
    return Role(
        name=f"channel-{name}",
        serves=(s.TELL_OWNER,),
        keys=(("channel", name),),
        calls=GATEWAY_DOORS,
        hears=(s.FEED, s.APPROVAL),
        reads=CHANNEL_READER,
        channels=(name,),
    )


def lender(agent: str, blocks: tuple[str, ...]) -> Role:
    """``trunkline mcp serve BLOCK --as AGENT``: it calls tools of these blocks, through all guards, as that agent."""
    return Role(
        name=f"lender-{agent}",
        calls=(s.LENT_LIST, s.LENT_CALL),
        says=(s.LENT_CANCEL,),
        lends=tuple((agent, block) for block in blocks),
        worker=False,
    )


def remote(name: str) -> Role:
    """A tools worker on another host, by its name: it answers what that host is asked, and can ask nothing."""
    return Role(
        name=f"remote-{name}",
        serves=(s.REMOTE_LIST, s.REMOTE_CALL),
        hears=(s.CANCEL_CALL,),
        keys=(("remote", name),),
        worker=False,
        away=True,
    )


def plugin(name: str, channels: tuple[str, ...] = ()) -> Role:
    """The plugin ``name`` in a process of its own, and the channels that it speaks for."""
    served = Role(
        name=f"plugin-{name}",
        serves=PLUGIN_DOORS,
        keys=(("plugin", name),),
        worker=False,
        away=True,
        answers=True,
    )
    if not channels:
        return served
    return replace(
        served, calls=GATEWAY_DOORS, hears=(s.FEED, s.APPROVAL), reads=CHANNEL_READER, channels=channels
    )


def roles(
    channels: tuple[str, ...],
    remotes: tuple[str, ...] = (),
    plugins: tuple[str, ...] = (),
    lent: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> tuple[Role, ...]:
    """Every role of an installation with these channels and remotes, these plugins in processes of their own, and these
    blocks lent to others, by the names of the agents."""
    lenders = (lender(agent, blocks) for agent, blocks in lent.items())
    extra = (*map(channel, channels), *map(remote, remotes), *map(plugin, plugins), *lenders)
    return (GATEWAY, MONITOR, TOOLS, MEMORY, *extra, OPERATOR, STREAMS)
