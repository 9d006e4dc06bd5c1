"""Read the matching messages of a stream without end, in order and without gaps, by a temporary consumer that is
recreated after a failure.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from nats.aio.msg import Msg

from trunkline_bus.async_iterator import StepIterator
from trunkline_bus.backoff import Backoff
from trunkline_bus.connection.nats_connection import NatsConnection
from trunkline_bus.errors import BusError
from trunkline_bus.ids import new_id
from trunkline_bus.streams.delivery_info import delivery_info
from trunkline_bus.streams.jetstream import request_api
from trunkline_bus.streams.jetstream_protocol import StoredRecord, nanoseconds
from trunkline_bus.streams.pull_requests import PullEnd, PullRequester

_log = logging.getLogger(__name__)

_BATCH = 256
_EXPIRES = 10.0
_FORGOTTEN_AFTER = 60.0


@asynccontextmanager
async def read_ordered(
    link: NatsConnection, stream: str, filter: str, *, deliver: str
) -> AsyncIterator[AsyncIterator[StoredRecord]]:
    """Yield the records of ``stream``, beginning where ``deliver`` says (``all``, ``new``, ``last_per_subject``).

    The consumer exists when the block is entered, so no later message is missed. Raises ``StreamError``.
    """
    cursor = _Cursor(link, stream, filter, deliver)
    await cursor.remake()
    try:
        yield StepIterator(cursor.next)
    finally:
        with anyio.CancelScope(shield=True):
            await cursor.forget()


class _Cursor:
    def __init__(self, link: NatsConnection, stream: str, filter: str, deliver: str) -> None:
        self._link = link
        self._stream = stream
        self._filter = filter
        self._start: dict[str, Any] = {"deliver_policy": deliver}
        self._name = ""
        self._seen = 0
        self._broken = False
        self._pulling = False
        self._puller = PullRequester(link, stream, "")

    async def remake(self) -> None:
        """Create a new consumer that begins after the last record seen."""
        await self._puller.close()
        self._name = new_id("follow")
        self._puller = PullRequester(self._link, self._stream, self._name)
        self._seen = 0
        config = {
            "name": self._name,
            "filter_subject": self._filter,
            "ack_policy": "none",
            "max_deliver": 1,
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": nanoseconds(_FORGOTTEN_AFTER),
            **self._start,
        }
        body = {"stream_name": self._stream, "config": config}
        reply = await request_api(
            self._link, f"CONSUMER.CREATE.{self._stream}.{self._name}.{self._filter}", body, timeout=10.0
        )
        if self._start["deliver_policy"] == "new":  # from here on the position is known
            self._note(int(reply["delivered"]["stream_seq"]))

    async def next(self) -> StoredRecord:
        """Return the next record. Recreate the consumer if a record may have been lost."""
        while True:
            if self._broken:
                await self._remake_patiently()
            if not self._pulling and not await self._begin_pull():
                continue
            msg = await self._puller.next()
            if msg is not None and (record := self._record(msg)) is not None:
                return record
            self._pulling = False
            self._broken = self._broken or self._puller.end in (PullEnd.GONE, PullEnd.BROKEN)

    async def _begin_pull(self) -> bool:
        try:
            await self._puller.start(batch=_BATCH, expires=_EXPIRES, extra={})
        except BusError:
            self._broken = True
        else:
            self._pulling = True
        return self._pulling

    async def _remake_patiently(self) -> None:
        backoff = Backoff(0.05, 1.0)
        while True:
            try:
                await self.remake()
                self._broken = self._pulling = False
                return
            except BusError as error:
                if self._link.closed:
                    raise
                _log.warning("cannot follow %s in %s: %s", self._filter, self._stream, error)
            await backoff.sleep()

    def _record(self, msg: Msg) -> StoredRecord | None:
        """Return the record; None if a record before it was lost."""
        info = delivery_info(msg.reply)
        if info.consumer_seq != self._seen + 1:
            self._broken = True
            return None
        self._seen = info.consumer_seq
        self._note(info.seq)
        return StoredRecord(info.seq, msg.subject, info.time, msg.data, msg.headers or {})

    def _note(self, seq: int) -> None:
        self._start = {"deliver_policy": "by_start_sequence", "opt_start_seq": seq + 1}

    async def forget(self) -> None:
        """Delete the consumer. Without this call the server deletes it a little later."""
        await self._puller.close()
        if self._link.connected:
            await self._link.publish(f"$JS.API.CONSUMER.DELETE.{self._stream}.{self._name}", b"")
