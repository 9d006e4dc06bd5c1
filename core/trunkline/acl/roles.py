"""The roles: each kind of process and its use of the bus, in terms of ``contracts.subjects``. The module is a table
and contains no NATS subjects.

A new endpoint, topic or bucket is denied to every role until it is listed here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from trunkline.contracts import subjects as s
from trunkline.contracts.memory.operation import Caller
from trunkline_bus import BucketSpec, ConsumerSpec, Counter, Endpoint, ObjectStoreSpec, Topic

Endpoints = tuple[Endpoint[Any, Any], ...]
Topics = tuple[Topic[Any], ...]

CHANNEL_OPERATIONS: Endpoints = tuple(row for row in s.GATEWAY_OPERATIONS if row.callers == "channels")
"""The gateway operations that every channel may call."""

PLUGIN_ENDPOINTS: Endpoints = (s.LIST_PLUGIN_TOOLS, s.RUN_PLUGIN_TOOL, s.HOST_CALL_REPLY)
"""The endpoints that an isolated plugin serves."""

FEED_STREAMS: tuple[str, ...] = (s.FEED_STREAM, s.JOURNAL_STREAM, s.INBOX_STREAM)
"""The streams that ``contracts/turns/feed_reader.py`` reads to show a turn without a gap."""

CHANNEL_READER: tuple[str, ...] = (*FEED_STREAMS, s.APPROVAL_STREAM, s.BUDGET_STREAM)
"""The streams from which a channel reads turns, approvals and events of budgets."""


MODEL_RECORDS: Topics = (s.OPENED_REQUEST, s.COST, s.BUDGET_EVENT)
"""What a worker that asks models records: each request, its cost, and a budget that is used up."""


def _memory_calls(caller: Caller) -> Endpoints:
    """Return the memory operations that list a process among their callers."""
    return tuple(operation for operation in s.MEMORY_OPERATIONS if caller in operation.callers)


@dataclass(frozen=True, kw_only=True)
class Role:
    """One kind of process. ``name`` is its NATS user.

    ``serves`` and ``calls`` are endpoints. ``publishes`` are topics to which the process publishes or which it
    stores; ``subscribes`` are topics to which it subscribes. ``counts`` are counters that it changes and reads.
    ``reads_streams`` are streams whose stored messages it reads, ``deletes`` streams from which it deletes single
    messages, ``pulls`` the consumers from which it pulls,
    ``reads_info`` streams whose settings it may read. ``writes_buckets`` and ``reads_buckets`` are key-value buckets.
    ``puts_objects`` are object stores in which it puts objects; ``takes_objects`` are those whose objects it reads
    and deletes.

    ``channels`` are the channel names under which the process calls the gateway and writes records. ``delegations`` are
    the pairs of agent and block under which it calls tools. ``keys`` restrict an endpoint that it serves to one value
    of a subject key. ``discovers`` permits service discovery. ``reads_all_info`` permits reading the settings and sizes
    of every stream. ``manages_streams`` permits creating and changing streams, and withholds the permissions that other
    roles share. ``is_restricted`` marks a process on a leaf node with its own streams, or an isolated process: it has
    only the permissions listed in its fields. ``allows_responses`` permits a reply to every request that it receives.
    """

    name: str
    serves: Endpoints = ()
    calls: Endpoints = ()
    publishes: Topics = ()
    subscribes: Topics = ()
    counts: tuple[Counter, ...] = ()
    reads_streams: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    pulls: tuple[ConsumerSpec, ...] = ()
    reads_info: tuple[str, ...] = ()
    writes_buckets: tuple[BucketSpec[Any], ...] = ()
    reads_buckets: tuple[BucketSpec[Any], ...] = ()
    puts_objects: tuple[ObjectStoreSpec, ...] = ()
    takes_objects: tuple[ObjectStoreSpec, ...] = ()
    channels: tuple[str, ...] = ()
    delegations: tuple[tuple[str, str], ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    is_worker: bool = True
    discovers: bool = False
    reads_all_info: bool = False
    manages_streams: bool = False
    is_restricted: bool = False
    allows_responses: bool = False


GATEWAY = Role(
    name="gateway",
    serves=(
        *s.GATEWAY_OPERATIONS, *s.AUTH_OPERATIONS, *s.AGENT_OPERATIONS, s.STORE_MESSAGES, s.LOAD_MESSAGES,
    ),
    calls=(
        *_memory_calls("gateway"), s.ANSWERER, s.CHECK_MODEL, s.LIST_MODELS, s.COMPLETE, s.END_TASKS, *s.ABILITIES,
        s.TURN_CONTEXT,
        *CHANNEL_OPERATIONS, s.TELL_OWNER,  # schedules that are due, and what became of them
    ),
    publishes=(
        s.INBOX, s.APPROVAL, s.AUDIT, s.TOKENS_CHANGED, s.TASK_TIMER,
        s.PANIC,  # stops everything; it cannot release the stop
        s.BUDGET_EVENT,  # the owner resets a budget in the web app
        s.SCHEDULE_TIMER,
        s.SCHEDULE_DUE,  # the owner runs a schedule now in the web app
    ),
    counts=(s.BUDGET_COUNTER,),
    subscribes=(
        s.FEED, s.TURN_FACT, s.APPROVAL, s.BUDGET_EVENT, s.PANIC, s.PANIC_RELEASE, s.PANIC_STOPPED,
        s.MEMORY_CHANGED, s.TOKENS_CHANGED,
    ),
    reads_streams=(
        *CHANNEL_READER, s.AUDIT_STREAM, s.COST_STREAM, s.SPAN_STREAM, s.FACT_STREAM, s.DEAD_STREAM,
        s.SCHEDULE_STREAM,  # which schedules are armed
    ),
    deletes=(
        s.DEAD_STREAM,  # the owner handles dead letters in the web app
        s.SCHEDULE_STREAM,  # a schedule was removed or changed
    ),
    pulls=(s.DEADLINE_CONSUMER, s.SCHEDULE_CONSUMER, s.SCHEDULED_TURN_CONSUMER, s.AGENT_CONSUMER, s.TASK_CONSUMER),
    writes_buckets=(
        s.TRANSCRIPT_BUCKET, s.REQUEST_BUCKET, s.DELETED_RESPONSE_BUCKET, s.TOKEN_BUCKET, s.PAIRING_BUCKET,
        s.PASSKEY_BUCKET, s.PASSKEY_CHALLENGE_BUCKET, s.TICKET_BUCKET, s.PUSH_SUBSCRIPTION_BUCKET, s.PUSH_CLAIM_BUCKET,
        s.SENDER_BUCKET, s.SCHEDULE_BUCKET, s.SCHEDULED_TURN_BUCKET, s.AGENT_BUCKET,
        s.TASK_BUCKET,
    ),
    reads_buckets=(
        s.AGENT_BUCKET, s.TASK_BUCKET,
        s.WORKER_BUCKET, s.PULSE_BUCKET, s.TRANSCRIPT_BUCKET, s.REQUEST_BUCKET, s.DELETED_RESPONSE_BUCKET,
        s.TOKEN_BUCKET, s.PAIRING_BUCKET, s.PASSKEY_BUCKET, s.PASSKEY_CHALLENGE_BUCKET, s.TICKET_BUCKET,
        s.CIRCUIT_BUCKET, s.KEY_POOL_BUCKET, s.PUSH_SUBSCRIPTION_BUCKET, s.PUSH_CLAIM_BUCKET, s.SENDER_BUCKET,
        s.SCHEDULE_BUCKET, s.SCHEDULED_TURN_BUCKET,
        s.CHANNEL_BUCKET,  # /api/overview reports the states of accounts
    ),
    puts_objects=(s.FILE_STORE, s.IMPORT_STORE, s.AUDIO_STORE),
    takes_objects=(s.FILE_STORE, s.EXPORT_STORE),
    channels=(s.SCHEDULE_CHANNEL,),
    reads_all_info=True,  # /metrics and /api/overview report the sizes of the streams
)  # fmt: skip

MONITOR = Role(
    name="monitor",
    serves=(s.COMPLETE, *s.ABILITIES, s.ANSWERER, s.CHECK_MODEL, s.LIST_MODELS, s.TURN_CONTEXT),
    calls=(
        s.COMPLETE, *s.ABILITIES,  # background work in its lifespans
        s.STORE_MESSAGES, s.LOAD_MESSAGES, s.LIST_TOOLS, s.CALL_TOOL, s.CALL_DECIDED_TOOL,
        *_memory_calls("monitor"),
    ),
    publishes=(
        s.JOURNAL, s.FEED, s.TURN_FACT, s.CANCEL_CALL, s.APPROVAL, s.APPROVAL_TIMER, s.AUDIT, s.PANIC_STOPPED,
        *MODEL_RECORDS,
    ),
    subscribes=(s.MEMORY_CHANGED, s.PANIC, s.PANIC_RELEASE, s.TOKENS_CHANGED),
    counts=(s.BUDGET_COUNTER,),
    reads_streams=(
        s.INBOX_STREAM, s.JOURNAL_STREAM, s.FEED_STREAM, s.APPROVAL_STREAM, s.SPAN_STREAM,
        s.REQUEST_STREAM, s.COST_STREAM, s.BUDGET_STREAM,
    ),
    deletes=(s.INBOX_STREAM, s.REQUEST_STREAM),
    pulls=(s.ALL_PARTITIONS_CONSUMER, s.LEARNER_CONSUMER, s.COMPACTION_CONSUMER),
    reads_info=(s.INBOX_STREAM,),
    writes_buckets=(s.PULSE_BUCKET, s.CIRCUIT_BUCKET, s.KEY_POOL_BUCKET, s.REDACTION_BUCKET),
    reads_buckets=(
        s.WORKER_BUCKET, s.CIRCUIT_BUCKET, s.KEY_POOL_BUCKET, s.REDACTION_BUCKET,
        s.TOKEN_BUCKET,  # the agent loop's port accepts access tokens
    ),
    puts_objects=(s.AUDIO_STORE,),
    takes_objects=(s.AUDIO_STORE,),
)  # fmt: skip

TOOLS = Role(
    name="tools",
    serves=(
        s.LIST_TOOLS,
        s.CALL_TOOL,
        s.CALL_DECIDED_TOOL,
        s.CHECK_LIVENESS,
        s.END_TASKS,
        s.DELEGATED_LIST_TOOLS,
        s.DELEGATED_CALL_TOOL,
    ),
    calls=(
        *_memory_calls("tools"),
        *(row for row in s.AUTH_OPERATIONS if "tools" in row.callers),
        *s.AGENT_OPERATIONS,
        s.COMPLETE,
        *s.ABILITIES,
        s.REMOTE_LIST_TOOLS,
        s.REMOTE_CALL_TOOL,
        s.CHECK_LIVENESS,
        *PLUGIN_ENDPOINTS,
        s.TELL_OWNER,
    ),
    publishes=(s.EFFECT, s.AUDIT, s.PANIC_STOPPED),
    subscribes=(
        s.EFFECT,
        s.CANCEL_CALL,
        s.DELEGATED_CANCEL_CALL,
        s.PANIC,
        s.PANIC_RELEASE,
        s.MEMORY_CHANGED,
    ),
    reads_streams=(s.EFFECT_STREAM,),
    writes_buckets=(s.QUOTA_BUCKET,),
    reads_buckets=(s.WORKER_BUCKET, s.QUOTA_BUCKET, s.SCHEDULE_BUCKET),
    puts_objects=(s.IMPORT_STORE, s.RESULT_STORE, s.AUDIO_STORE),
    takes_objects=(s.EXPORT_STORE, s.RESULT_STORE),
)

PURGED: tuple[str, ...] = (
    s.JOURNAL_STREAM, s.FEED_STREAM, s.EFFECT_STREAM, s.FACT_STREAM, s.APPROVAL_STREAM, s.SPAN_STREAM, s.DEAD_STREAM,
    s.RESULT_STORE.stream_name, s.CLAIM_STORE.stream_name, s.TRANSCRIPT_BUCKET.stream_name,
    s.AGENT_BUCKET.stream_name, s.TASK_BUCKET.stream_name,
)  # fmt: skip
"""The streams and stores from which a purge deletes the data of a conversation."""

MEMORY = Role(
    name="memory",
    serves=s.MEMORY_OPERATIONS,
    calls=_memory_calls("memory"),  # a budget of its own embedder reads the ledger
    publishes=(s.MEMORY_CHANGED, *MODEL_RECORDS),  # requests of an embedder that is a model adapter
    counts=(s.BUDGET_COUNTER,),
    reads_streams=(
        s.AUDIT_STREAM, s.REQUEST_STREAM, s.COST_STREAM, s.BUDGET_STREAM, s.INBOX_STREAM, s.TIMER_STREAM, *PURGED,
    ),
    deletes=(s.AUDIT_STREAM, s.REQUEST_STREAM, *PURGED),
    writes_buckets=(s.REDACTION_BUCKET,),
    reads_buckets=(s.REDACTION_BUCKET,),
    puts_objects=(s.EXPORT_STORE,),
    takes_objects=(s.IMPORT_STORE,),
)  # fmt: skip

OPERATOR = Role(
    name="operator",
    calls=(
        *s.GATEWAY_OPERATIONS, *s.AUTH_OPERATIONS, *_memory_calls("operator"), *s.ABILITIES,
        s.REMOTE_LIST_TOOLS,
        s.CONTROL_CHANNEL,  # `trunkline channels`
        s.LIST_TOOLS,  # `trunkline permissions rules add` checks whether the tool exists
    ),
    publishes=(
        s.INBOX,  # `trunkline dead-letters retry` puts a message back
        s.AUDIT,
        s.PANIC,
        s.PANIC_RELEASE,
        s.BUDGET_EVENT,  # `trunkline budget reset`
        s.SCHEDULE_DUE,  # `trunkline schedules run`
    ),
    counts=(s.BUDGET_COUNTER,),
    subscribes=(s.FEED, s.APPROVAL, s.BUDGET_EVENT, s.TURN_FACT, s.PANIC_STOPPED),
    reads_streams=(
        *CHANNEL_READER, s.FACT_STREAM, s.SPAN_STREAM, s.AUDIT_STREAM, s.COST_STREAM, s.DEAD_STREAM,
        s.RESULT_STORE.stream_name,  # `trunkline results`
    ),
    deletes=(s.DEAD_STREAM,),
    reads_buckets=(s.WORKER_BUCKET, s.PULSE_BUCKET, s.CIRCUIT_BUCKET, s.KEY_POOL_BUCKET, s.SCHEDULE_BUCKET),
    puts_objects=(s.IMPORT_STORE, s.AUDIO_STORE),
    takes_objects=(s.EXPORT_STORE,),
    channels=("cli", "terminal"),
    is_worker=False,
    discovers=True,
    reads_all_info=True,
)  # fmt: skip

STREAMS = Role(
    name="streams",
    publishes=(s.MOVED_INBOX,),  # `trunkline partitions` redistributes the inbox
    reads_streams=(s.INBOX_STREAM,),
    deletes=(s.INBOX_STREAM,),
    reads_buckets=(s.WORKER_BUCKET,),
    is_worker=False,
    manages_streams=True,
)


def channel_role(name: str) -> Role:
    """Return the role of the channels worker that runs the channel ``name``. It can use no other channel's name."""
    return Role(
        name=f"channel-{name}",
        serves=(s.TELL_OWNER, s.CONTROL_CHANNEL),
        keys=(("channel", name),),
        calls=(*CHANNEL_OPERATIONS, *s.ABILITIES),
        subscribes=(s.FEED, s.APPROVAL, s.BUDGET_EVENT, s.TURN_FACT),
        reads_streams=CHANNEL_READER,
        puts_objects=(s.AUDIO_STORE,),
        channels=(name,),
    )


def delegate_role(agent: str, blocks: tuple[str, ...]) -> Role:
    """Return the role of ``trunkline mcp serve BLOCK --as AGENT``: it calls tools of these blocks as that agent; all
    guards apply.
    """
    return Role(
        name=f"delegate-{agent}",
        calls=(s.DELEGATED_LIST_TOOLS, s.DELEGATED_CALL_TOOL),
        publishes=(s.DELEGATED_CANCEL_CALL,),
        delegations=tuple((agent, block) for block in blocks),
        is_worker=False,
    )


def remote_role(name: str) -> Role:
    """Return the role of a tools worker on another host: it serves requests to that host and can call no endpoint."""
    return Role(
        name=f"remote-{name}",
        serves=(s.REMOTE_LIST_TOOLS, s.REMOTE_CALL_TOOL),
        subscribes=(s.CANCEL_CALL,),
        keys=(("remote", name),),
        is_worker=False,
        is_restricted=True,
    )


def plugin_role(name: str, channels: tuple[str, ...] = ()) -> Role:
    """Return the role of the isolated plugin ``name``, with the channels whose names it may use."""
    served = Role(
        name=f"plugin-{name}",
        serves=PLUGIN_ENDPOINTS,
        keys=(("plugin", name),),
        is_worker=False,
        is_restricted=True,
        allows_responses=True,
    )
    if not channels:
        return served
    return replace(
        served,
        calls=(*CHANNEL_OPERATIONS, *s.ABILITIES),
        subscribes=(s.FEED, s.APPROVAL, s.BUDGET_EVENT, s.TURN_FACT),
        reads_streams=CHANNEL_READER,
        puts_objects=(s.AUDIO_STORE,),
        channels=channels,
    )


def all_roles(
    channels: tuple[str, ...],
    remotes: tuple[str, ...] = (),
    plugins: tuple[str, ...] = (),
    delegations: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> tuple[Role, ...]:
    """Return every role of an installation with these channels, remotes, isolated plugins and delegations (blocks
    that other agents may use, by the agents' names).
    """
    delegates = (delegate_role(agent, blocks) for agent, blocks in delegations.items())
    extra = (*map(channel_role, channels), *map(remote_role, remotes), *map(plugin_role, plugins), *delegates)
    return (GATEWAY, MONITOR, TOOLS, MEMORY, *extra, OPERATOR, STREAMS)
