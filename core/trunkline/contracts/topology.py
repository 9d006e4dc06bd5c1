"""All that the platform keeps on the server, with the ages, sizes and replicas that are configured."""

from typing import Literal

from msgspec.structs import replace

from trunkline.contracts.gateway.subjects import REQUESTS, TRANSCRIPTS
from trunkline.contracts.retention import MEGABYTE, USUAL, Retention
from trunkline.contracts.streams import (
    APPROVAL_STREAM,
    AUDIT_STREAM,
    DEAD_STREAM,
    DEADLINES,
    EFFECT_STREAM,
    FACT_STREAM,
    FEED_STREAM,
    INBOX_STREAM,
    JOURNAL_STREAM,
    LEARNER,
    PARTITIONS,
    SPAN_STREAM,
    STREAMS,
    TIMER_STREAM,
    inbox_consumer,
)
from trunkline.contracts.tools.subjects import QUOTA_BUCKET, RESULTS
from trunkline.contracts.workers.subjects import CLAIMS, EXPORTS, IMPORTS, PULSE_BUCKET, WORKER_BUCKET
from trunkline_bus import (
    ObjectStoreSpec,
    StreamSpec,
    Topology,
)

DAY = 86_400.0

REMOTE_STREAMS = (EFFECT_STREAM, AUDIT_STREAM, DEAD_STREAM)

Storage = Literal["file", "memory"]
"""Where the server keeps a stream."""


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
        consumers=(*(inbox_consumer(partition) for partition in range(PARTITIONS)), LEARNER, DEADLINES),
        buckets=tuple(
            replace(bucket, replicas=replicas)
            for bucket in (PULSE_BUCKET, WORKER_BUCKET, QUOTA_BUCKET, TRANSCRIPTS, REQUESTS)
        ),
        objects=tuple(
            replace(store, replicas=replicas)
            for store in (EXPORTS, IMPORTS, claims_store(retention), results_store(retention))
        ),
    )


def remote_topology(retention: Retention = USUAL) -> Topology:
    """What a remote keeps on its own server: the ledger and the audit log of its calls, who lives, and what it could
    not read."""
    whole = topology(retention=retention)
    streams = tuple(stream for stream in whole.streams if stream.name in REMOTE_STREAMS)
    claims = tuple(store for store in whole.objects if store.name == CLAIMS.name)
    return Topology(streams=streams, buckets=(WORKER_BUCKET,), objects=claims)


def claims_store(retention: Retention) -> ObjectStoreSpec:
    """Where bodies lie that are too large for a message, for as long as anything may name one."""
    return replace(CLAIMS, ttl=retention.body_days * DAY, max_bytes=int(retention.body_mb * MEGABYTE))


def results_store(retention: Retention) -> ObjectStoreSpec:
    """Where the tools worker keeps results that are too long for their conversation."""
    return replace(RESULTS, ttl=retention.result_days * DAY, max_bytes=int(retention.result_mb * MEGABYTE))


def _limits(retention: Retention) -> dict[str, tuple[float | None, float]]:
    """Age in seconds and size in megabytes of each stream."""
    return {
        INBOX_STREAM: (None, retention.inbox_mb),
        JOURNAL_STREAM: (retention.journal_days * DAY, retention.journal_mb),
        EFFECT_STREAM: (retention.journal_days * DAY, retention.effect_mb),
        FEED_STREAM: (retention.feed_hours * 3_600.0, retention.feed_mb),
        FACT_STREAM: (retention.fact_days * DAY, retention.fact_mb),
        SPAN_STREAM: (retention.trace_days * DAY, retention.trace_mb),
        APPROVAL_STREAM: (retention.journal_days * DAY, retention.approval_mb),
        TIMER_STREAM: (retention.journal_days * DAY, retention.approval_mb),
        AUDIT_STREAM: (retention.audit_days * DAY, retention.audit_mb),
        DEAD_STREAM: (retention.dead_days * DAY, retention.dead_mb),
    }
