"""The subjects for operating the platform: spans, panic, heartbeats and dead letters."""

from trunkline.contracts.blocks.messages import BlockStatusHeartbeat
from trunkline.contracts.streams import DEAD_STREAM, SPAN_STREAM
from trunkline.contracts.workers.messages import SpanBatch, WorkerHeartbeat
from trunkline.contracts.workers.panic import Panic, PanicRelease, PanicStopped
from trunkline_bus import (
    BucketSpec,
    DeadLetter,
    ObjectStoreSpec,
    Subject,
    Topic,
)

SPANS: Topic[SpanBatch] = Topic(
    name="spans", subject=Subject("trunkline.evt.trace.{trace}.spans"), payload=SpanBatch, stream=SPAN_STREAM,
    doc="Spans by trace: each span when it ends, and before that once if it takes long.",
)  # fmt: skip

PANIC: Topic[Panic] = Topic(
    name="panic", subject=Subject("trunkline.ctl.panic"), payload=Panic,
    doc="Stop everything. Every tools worker and monitor receives it; the operator and the gateway send it.",
)  # fmt: skip

PANIC_RELEASE: Topic[PanicRelease] = Topic(
    name="panic release", subject=Subject("trunkline.ctl.panic.release"), payload=PanicRelease,
    doc="Release the stop. Every tools worker and monitor receives it; only the operator sends it.",
)  # fmt: skip

PANIC_STOPPED: Topic[PanicStopped] = Topic(
    name="stopped", subject=Subject("trunkline.ctl.panic.stopped"), payload=PanicStopped,
    doc="A tools worker or monitor has ended everything that it ran, because of panic. Whoever sent it receives this.",
)  # fmt: skip

PULSE_BUCKET: BucketSpec[BlockStatusHeartbeat] = BucketSpec(
    name="pulse", payload=BlockStatusHeartbeat, ttl=5.0, storage="memory"
)
WORKER_BUCKET: BucketSpec[WorkerHeartbeat] = BucketSpec(
    name="workers", payload=WorkerHeartbeat, ttl=4.0, storage="memory"
)
EXPORT_STORE = ObjectStoreSpec(name="exports", ttl=3_600.0)
IMPORT_STORE = ObjectStoreSpec(name="imports", ttl=3_600.0)
CLAIM_STORE = ObjectStoreSpec(name="claims")

DEAD_LETTER_SUBJECT = "trunkline.dead.letters"
"""The subject of messages that could not be decoded or handled, with the reason."""

DEAD_LETTER_TOPIC: Topic[DeadLetter] = Topic(
    name="dead letters", subject=Subject(DEAD_LETTER_SUBJECT), payload=DeadLetter, stream=DEAD_STREAM,
    doc="Messages that could not be decoded or handled, with the reason and their bytes.",
)  # fmt: skip
