"""Read a stream's matching messages for ever, in order and without gaps, by a throw-away consumer that is remade."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
from nats.aio.msg import Msg

from trunkline_bus.acks import delivery_info
from trunkline_bus.errors import BusError
from trunkline_bus.ids import new_id
from trunkline_bus.jetstream import api
from trunkline_bus.jsapi import StoredRecord, nanoseconds
from trunkline_bus.link import Link
from trunkline_bus.pull import End, Pull

_log = logging.getLogger(__name__)

_BATCH = 256
_EXPIRES = 10.0
_FORGOTTEN_AFTER = 60.0


@asynccontextmanager
async def follow(
    link: Link, stream: str, filter: str, *, deliver: str
) -> AsyncIterator[AsyncIterator[StoredRecord]]:
    """Records of ``stream`` from the start policy ``deliver`` (``all``, ``new``, ``last_per_subject``) on.

    The consumer exists when the block is entered, so nothing later is missed. Raises ``StreamError`` kinds.
    """
    cursor = _Cursor(link, stream, filter, deliver)
    await cursor.remake()
    async with aclosing(cursor.records()) as records:
        try:
            yield records
        finally:
            with anyio.CancelScope(shield=True):
                await cursor.forget()


class _Cursor:
    def __init__(self, link: Link, stream: str, filter: str, deliver: str) -> None:
        self._link = link
        self._stream = stream
        self._filter = filter
        self._start: dict[str, Any] = {"deliver_policy": deliver}
        self._name = ""
        self._seen = 0
        self._broken = False

    async def remake(self) -> None:
        """Make a new consumer behind the last record seen."""
        self._name = new_id("follow")
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
        reply = await api(
            self._link, f"CONSUMER.CREATE.{self._stream}.{self._name}.{self._filter}", body, timeout=10.0
        )
        if self._start["deliver_policy"] == "new":  # from here on the place is known
            self._note(int(reply["delivered"]["stream_seq"]))

    async def records(self) -> AsyncGenerator[StoredRecord, None]:
        """The records, remaking the consumer whenever it may have lost one."""
        while True:
            async with Pull(
                self._link, self._stream, self._name, batch=_BATCH, expires=_EXPIRES, extra={}
            ) as pull:
                self._broken = False
                async for msg in pull:
                    record = self._record(msg)
                    if record is None:
                        break
                    yield record
            if self._broken or pull.end in (End.GONE, End.BROKEN):
                await self._remake_patiently()

    async def _remake_patiently(self) -> None:
        pause = 0.05
        while True:
            try:
                return await self.remake()
            except BusError as error:
                _log.warning("cannot follow %s in %s: %s", self._filter, self._stream, error)
            await anyio.sleep(pause)
            pause = min(pause * 2, 1.0)

    def _record(self, msg: Msg) -> StoredRecord | None:
        """The record, or None when one before it was lost on the way."""
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
        """Delete the consumer; the server would do so itself a little later."""
        if self._link.connected:
            await self._link.publish(f"$JS.API.CONSUMER.DELETE.{self._stream}.{self._name}", b"")
