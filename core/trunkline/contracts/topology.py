"""The streams, consumers, buckets and object stores on the server, with the configured ages, sizes and replicas."""

from typing import Literal

from msgspec.structs import replace

from trunkline.contracts.agents.subjects import AGENT_BUCKET, TASK_BUCKET
from trunkline.contracts.auth.subjects import (
    PAIRING_BUCKET,
    PASSKEY_BUCKET,
    PASSKEY_CHALLENGE_BUCKET,
    SENDER_BUCKET,
    TOKEN_BUCKET,
)
from trunkline.contracts.channels.records import CHANNEL_BUCKET
from trunkline.contracts.gateway.messages import DeletedResponse
from trunkline.contracts.gateway.subjects import (
    DELETED_RESPONSE_BUCKET,
    FILE_STORE,
    REQUEST_BUCKET,
    TRANSCRIPT_BUCKET,
)
from trunkline.contracts.gateway.ticket import TICKET_BUCKET
from trunkline.contracts.models.circuits import CIRCUIT_BUCKET
from trunkline.contracts.models.key_pools import KEY_POOL_BUCKET
from trunkline.contracts.models.redaction_key import REDACTION_BUCKET
from trunkline.contracts.models.subjects import AUDIO_STORE
from trunkline.contracts.push.subjects import PUSH_CLAIM_BUCKET, PUSH_SUBSCRIPTION_BUCKET
from trunkline.contracts.retention import DEFAULT_RETENTION, MEGABYTE, Retention
from trunkline.contracts.schedules.subjects import SCHEDULE_BUCKET, SCHEDULED_TURN_BUCKET
from trunkline.contracts.streams import (
    AGENT_CONSUMER,
    APPROVAL_STREAM,
    AUDIT_STREAM,
    BUDGET_STREAM,
    COMPACTION_CONSUMER,
    COST_STREAM,
    COUNTER_STREAM,
    DEAD_STREAM,
    DEADLINE_CONSUMER,
    DEFAULT_PARTITIONS,
    EFFECT_STREAM,
    FACT_STREAM,
    FEED_STREAM,
    INBOX_STREAM,
    JOURNAL_STREAM,
    LEARNER_CONSUMER,
    REQUEST_STREAM,
    SCHEDULE_CONSUMER,
    SCHEDULE_STREAM,
    SCHEDULED_TURN_CONSUMER,
    SPAN_STREAM,
    STREAMS,
    TASK_CONSUMER,
    TIMER_STREAM,
    inbox_consumer,
)
from trunkline.contracts.tools.subjects import QUOTA_BUCKET, RESULT_STORE
from trunkline.contracts.workers.subjects import (
    CLAIM_STORE,
    EXPORT_STORE,
    IMPORT_STORE,
    PULSE_BUCKET,
    WORKER_BUCKET,
)
from trunkline_bus import (
    BucketSpec,
    ObjectStoreSpec,
    StreamSpec,
    Topology,
)

DAY_SECONDS = 86_400.0

REMOTE_STREAMS = (EFFECT_STREAM, AUDIT_STREAM, DEAD_STREAM)

COUNTER_DAYS = 8.0
"""Days for which increments are kept. The longest window is a day; a turn that waits longer begins anew."""

Storage = Literal["file", "memory"]
"""The storage type of a stream."""


BUCKETS = (
    PULSE_BUCKET,
    WORKER_BUCKET,
    QUOTA_BUCKET,
    TRANSCRIPT_BUCKET,
    REQUEST_BUCKET,
    CIRCUIT_BUCKET,
    KEY_POOL_BUCKET,
    REDACTION_BUCKET,
    TOKEN_BUCKET,
    PAIRING_BUCKET,
    PASSKEY_BUCKET,
    PASSKEY_CHALLENGE_BUCKET,
    SENDER_BUCKET,
    TICKET_BUCKET,
    CHANNEL_BUCKET,
    PUSH_SUBSCRIPTION_BUCKET,
    PUSH_CLAIM_BUCKET,
    SCHEDULE_BUCKET,
    SCHEDULED_TURN_BUCKET,
    AGENT_BUCKET,
    TASK_BUCKET,
)


def topology(
    *,
    replicas: int = 1,
    retention: Retention = DEFAULT_RETENTION,
    feed: Storage = "file",
) -> Topology:
    """Return everything that the platform keeps on the server; ``apply()`` creates or updates it. ``feed`` is the
    storage of the feed.

    Streams whose content can be rebuilt are stored asynchronously, but only in files and without replicas, because
    the server supports neither combination.
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
        consumers=(
            *(inbox_consumer(partition) for partition in range(DEFAULT_PARTITIONS)),
            LEARNER_CONSUMER,
            COMPACTION_CONSUMER,
            DEADLINE_CONSUMER,
            SCHEDULE_CONSUMER,
            SCHEDULED_TURN_CONSUMER,
            AGENT_CONSUMER,
            TASK_CONSUMER,
        ),
        buckets=tuple(
            replace(bucket, replicas=replicas) for bucket in (*BUCKETS, deleted_response_spec(retention))
        ),
        objects=tuple(
            replace(store, replicas=replicas)
            for store in (
                EXPORT_STORE,
                IMPORT_STORE,
                AUDIO_STORE,
                claim_store_spec(retention),
                result_store_spec(retention),
                file_store_spec(retention),
            )
        ),
    )


def remote_topology(retention: Retention = DEFAULT_RETENTION) -> Topology:
    """Return the topology of a remote host's own server: the effect ledger and the audit log of its calls, heartbeats
    and dead letters.
    """
    whole = topology(retention=retention)
    streams = tuple(stream for stream in whole.streams if stream.name in REMOTE_STREAMS)
    claims = tuple(store for store in whole.objects if store.name == CLAIM_STORE.name)
    return Topology(streams=streams, buckets=(WORKER_BUCKET,), objects=claims)


def claim_store_spec(retention: Retention) -> ObjectStoreSpec:
    """Return the store of bodies that are too large for a message. It keeps a body as long as any message may name
    the body.
    """
    return replace(
        CLAIM_STORE, ttl=retention.body_days * DAY_SECONDS, max_bytes=int(retention.body_mb * MEGABYTE)
    )


def result_store_spec(retention: Retention) -> ObjectStoreSpec:
    """Return the store in which the tools worker keeps results that are too long for their conversation."""
    return replace(
        RESULT_STORE, ttl=retention.result_days * DAY_SECONDS, max_bytes=int(retention.result_mb * MEGABYTE)
    )


def file_store_spec(retention: Retention) -> ObjectStoreSpec:
    """Return the store of uploaded files. A full store refuses uploads."""
    return replace(
        FILE_STORE, ttl=retention.file_days * DAY_SECONDS, max_bytes=int(retention.file_mb * MEGABYTE)
    )


def deleted_response_spec(retention: Retention) -> BucketSpec[DeletedResponse]:
    """Return the bucket of deleted responses. A mark is kept as long as the journal of the turn."""
    return replace(DELETED_RESPONSE_BUCKET, ttl=retention.journal_days * DAY_SECONDS)


def _limits(retention: Retention) -> dict[str, tuple[float | None, float]]:
    """Return the age in seconds and the size in megabytes of each stream."""
    return {
        INBOX_STREAM: (None, retention.inbox_mb),
        JOURNAL_STREAM: (retention.journal_days * DAY_SECONDS, retention.journal_mb),
        EFFECT_STREAM: (retention.journal_days * DAY_SECONDS, retention.effect_mb),
        FEED_STREAM: (retention.feed_hours * 3_600.0, retention.feed_mb),
        FACT_STREAM: (retention.fact_days * DAY_SECONDS, retention.fact_mb),
        SPAN_STREAM: (retention.trace_days * DAY_SECONDS, retention.trace_mb),
        APPROVAL_STREAM: (retention.journal_days * DAY_SECONDS, retention.approval_mb),
        TIMER_STREAM: (retention.journal_days * DAY_SECONDS, retention.approval_mb),
        SCHEDULE_STREAM: (None, retention.schedule_mb),
        AUDIT_STREAM: (retention.audit_days * DAY_SECONDS, retention.audit_mb),
        REQUEST_STREAM: (retention.journal_days * DAY_SECONDS, retention.cost_mb),
        COST_STREAM: (retention.cost_days * DAY_SECONDS, retention.cost_mb),
        BUDGET_STREAM: (retention.cost_days * DAY_SECONDS, retention.cost_mb),
        COUNTER_STREAM: (COUNTER_DAYS * DAY_SECONDS, retention.cost_mb),
        DEAD_STREAM: (retention.dead_letter_days * DAY_SECONDS, retention.dead_letter_mb),
    }
