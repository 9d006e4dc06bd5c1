"""JetStream with bytes: store one message, read the last one, read many. No envelopes in here.

Every operation survives a restart of the server. ``store`` repeats itself with the same message id, so a repeat of
something already stored is answered with the first sequence instead of storing it twice.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec
from nats.aio.msg import Msg

from trunkline_bus.errors import BusError, CallTimeout, NoResponders
from trunkline_bus.jsapi import (
    NO_MESSAGE,
    NOT_READY,
    StoredRecord,
    error_of,
    record_of_direct,
    record_of_get,
)
from trunkline_bus.link import STATUS, ConnectionLost, Link, Unsettled
from trunkline_bus.messages import Ack

_PAGE = 256
_PAGE_BYTES = 4 * 1024 * 1024
_SILENCE = 2.0


class _PubAck(msgspec.Struct):
    seq: int = 0
    duplicate: bool = False
    error: dict[str, Any] | None = None


_PUB_ACK = msgspec.json.Decoder(_PubAck)


async def store(link: Link, subject: str, data: bytes, headers: Mapping[str, str], timeout: float) -> Ack:
    """Publish into the stream behind ``subject`` and return its acknowledgement.

    ``headers`` must hold a ``Nats-Msg-Id``. Raises ``SequenceConflict``, ``StorageFull``, ``StreamUnavailable``,
    ``StreamError`` or ``ConnectionFailed``.
    """

    async def attempt(remaining: float) -> Ack:
        msg = await link.request(subject, data, timeout=remaining, headers=headers, fragile=True)
        ack = _PUB_ACK.decode(msg.data)
        if ack.error is None:
            return Ack(ack.seq, ack.duplicate)
        if ack.error.get("err_code") in NOT_READY:
            raise Unsettled(str(ack.error.get("description")))
        raise error_of(ack.error, subject)

    result: Ack = await link.persist(attempt, timeout=timeout, what=f"append to {subject}")
    return result


async def api(link: Link, operation: str, body: Any = None, *, timeout: float = 5.0) -> dict[str, Any]:
    """A JetStream API call that must succeed. Raises the ``StreamError`` kind of its error."""
    reply = await link.api(operation, body, timeout=timeout)
    if "error" in reply:
        raise error_of(reply["error"], operation)
    return reply


async def last_record(link: Link, stream: str, filter: str, *, timeout: float = 5.0) -> StoredRecord | None:
    """The last message whose subject matches, from the stream's leader."""
    reply = await link.api(f"STREAM.MSG.GET.{stream}", {"last_by_subj": filter}, timeout=timeout)
    if "error" not in reply:
        return record_of_get(reply["message"])
    if reply["error"].get("err_code") == NO_MESSAGE:
        return None
    raise error_of(reply["error"], f"last {filter} in {stream}")


async def records(
    link: Link, stream: str, filter: str, *, after: int = 0, timeout: float = 10.0
) -> AsyncIterator[StoredRecord]:
    """All stored messages that match with a sequence above ``after``, in order, by batched direct gets.

    Raises ``StreamUnavailable`` when the stream stays silent for ``timeout`` seconds.
    """
    position = after
    more = True
    while more:
        page, more = await _page(link, stream, filter, position, timeout)
        for record in page:
            position = record.seq
            yield record


async def _page(
    link: Link, stream: str, filter: str, after: int, timeout: float
) -> tuple[list[StoredRecord], bool]:
    """One page and whether another one may follow. A broken page is returned as far as it came."""

    async def attempt(_remaining: float) -> tuple[list[StoredRecord], bool]:
        page: list[StoredRecord] = []
        try:
            more = await _collect(link, stream, filter, after, page)
        except (CallTimeout, ConnectionLost):
            if not page:
                raise
            return page, True
        return page, more

    result: tuple[list[StoredRecord], bool] = await link.persist(
        attempt, timeout=timeout, what=f"read {filter} in {stream}"
    )
    return result


async def _collect(link: Link, stream: str, filter: str, after: int, page: list[StoredRecord]) -> bool:
    """Fill ``page`` from one batched request; True when messages are left behind it."""
    request = {"seq": after + 1, "next_by_subj": filter, "batch": _PAGE, "max_bytes": _PAGE_BYTES}
    async with Replies(
        link, f"$JS.API.DIRECT.GET.{stream}", msgspec.json.encode(request), fragile=True
    ) as replies:
        while True:
            msg = await replies.next(_SILENCE)
            headers = msg.headers or {}
            status = headers.get(STATUS)
            if status is None:
                page.append(record_of_direct(msg.data, headers))
            elif status == "204":
                return int(headers.get("Nats-Num-Pending", "0")) > 0
            elif status == "404":
                return False
            else:
                raise BusError(f"read {filter} in {stream}: {status} {headers.get('Description', '')}")


class Replies:
    """A request that brings several replies: ``next`` waits for one. Ends with the block."""

    def __init__(
        self,
        link: Link,
        subject: str,
        data: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        fragile: bool = False,
    ) -> None:
        self._fragile = fragile
        self._lost = False
        self._undo: Callable[[], None] | None = None
        self._link = link
        self._subject = subject
        self._data = data
        self._headers = headers
        self._items: deque[Msg] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._inbox = ""

    async def __aenter__(self) -> "Replies":
        """Send the request. Raises ``ConnectionFailed``."""
        await self._link.until_connected(self._link.settings.drain_timeout)
        self._inbox = self._link.open_inbox(self._arrived)
        if self._fragile:
            self._undo = self._link.on_lost(self._break)
        await self._link.publish(self._subject, self._data, reply=self._inbox, headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._link.close_inbox(self._inbox)
        if self._undo is not None:
            self._undo()

    def _break(self) -> None:
        self._lost = True
        self._wake()

    def _arrived(self, msg: Msg) -> None:
        self._items.append(msg)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self, timeout: float) -> Msg:
        """The next reply. Raises ``CallTimeout`` after ``timeout`` silent seconds, ``NoResponders``.

        A ``fragile`` one raises ``ConnectionLost`` once the connection broke and nothing is left.
        """
        if not self._items and not self._lost:
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            timer = loop.call_later(timeout, self._expire, self._waiter, timeout)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
        if not self._items:
            raise ConnectionLost("the connection to NATS was lost")
        msg = self._items.popleft()
        if not msg.data and msg.headers is not None and msg.headers.get(STATUS) == "503":
            raise NoResponders(f"nobody listens on {self._subject}")
        return msg

    def _expire(self, waiter: "asyncio.Future[None]", timeout: float) -> None:
        if not waiter.done():
            waiter.set_exception(CallTimeout(f"no reply from {self._subject} for {timeout:g} s"))
