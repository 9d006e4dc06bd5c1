"""JetStream operations on bytes: store a message, read the last message, read many. This module knows no envelopes.

Every operation survives a restart of the server. ``publish_to_stream`` repeats an append with the same message id. If
the message is stored already, the server answers with the first sequence and does not store the message twice.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
from nats.aio.msg import Msg

from trunkline_bus.connection.mailbox import Mailbox
from trunkline_bus.connection.nats_connection import STATUS, ConnectionLost, NatsConnection
from trunkline_bus.errors import BusError, CallTimeout, SequenceConflict, StorageFull
from trunkline_bus.messages import Ack
from trunkline_bus.streams.jetstream_protocol import (
    EXPECTED_STREAM,
    INCREMENT,
    NO_MESSAGE,
    NOT_READY,
    StoredRecord,
    error_of,
    record_of_direct,
    record_of_get,
)
from trunkline_bus.streams.retry import JetStreamNotReady, append_slot, request_with_retry, retry_until_done

_PAGE = 256
_PAGE_BYTES = 4 * 1024 * 1024
_SILENCE = 2.0
_NO_SUCH_SEQUENCE = 2**62


class _PubAck(msgspec.Struct):
    seq: int = 0
    duplicate: bool = False
    val: str | None = None
    error: dict[str, Any] | None = None


_PUB_ACK = msgspec.json.Decoder(_PubAck)


class ExpectedSequence(msgspec.Struct, frozen=True):
    """The condition of a compare-and-set write: ``expect`` is the last sequence under ``filter`` in ``stream``."""

    stream: str
    filter: str
    expect: int


async def publish_to_stream(
    link: NatsConnection,
    stream: str,
    subject: str,
    data: bytes,
    headers: Mapping[str, str],
    timeout: float,
    expected: ExpectedSequence | None = None,
) -> Ack:
    """Publish to ``subject`` in ``stream`` and return the acknowledgement.

    ``headers`` must have a ``Nats-Msg-Id``, and the headers for ``expected``. Raises ``SequenceConflict``,
    ``StorageFull``, ``StreamUnavailable``, ``StreamError`` or ``ConnectionFailed``.
    """
    # The server refuses an increment that expects anything. Its subject alone names the stream.
    final = headers if INCREMENT in headers else {**headers, EXPECTED_STREAM: stream}
    attempts = 0

    async def attempt(remaining: float) -> Ack:
        nonlocal attempts
        attempts += 1
        try:
            msg = await link.request(subject, data, timeout=remaining, headers=final, fragile=True)
        except CallTimeout:
            await _refuse_when_full(link, stream, subject)
            raise
        ack = _PUB_ACK.decode(msg.data)
        if ack.error is None:
            return Ack(ack.seq, ack.duplicate, None if ack.val is None else int(ack.val))
        if ack.error.get("err_code") in NOT_READY:
            raise JetStreamNotReady(str(ack.error.get("description")))
        problem = error_of(ack.error, subject)
        if isinstance(problem, SequenceConflict) and expected is not None and attempts > 1:
            return await _own_success(link, expected, data, problem)
        raise problem

    what = f"append to {subject}"
    async with append_slot(link, timeout, what) as remaining:
        result: Ack = await retry_until_done(link, attempt, timeout=remaining, what=what)
    return result


async def _refuse_when_full(link: NatsConnection, stream: str, subject: str) -> None:
    """Raise ``StorageFull`` if the server cannot write.

    Such a server does not answer an append. It answers a request to delete a message that cannot exist, with the
    reason.
    """
    try:
        body = msgspec.json.encode({"seq": _NO_SUCH_SEQUENCE, "no_erase": True})
        msg = await link.request(f"$JS.API.STREAM.MSG.DELETE.{stream}", body, timeout=0.5, fragile=True)
    except BusError:
        return
    error = msgspec.json.decode(msg.data).get("error")
    if error is not None and isinstance(problem := error_of(error, subject), StorageFull):
        raise problem


async def _own_success(
    link: NatsConnection, expected: ExpectedSequence, data: bytes, conflict: SequenceConflict
) -> Ack:
    """Return the acknowledgement of an earlier attempt of the same append; otherwise raise ``conflict``.

    The server compares sequences before it detects duplicates, so a repeated append may conflict with its own first
    attempt. The first message after ``expected.expect`` decides: if its bytes are equal, envelope id included, the
    append has succeeded.
    """
    body = {"seq": expected.expect + 1, "next_by_subj": expected.filter}
    reply = await request_with_retry(link, f"STREAM.MSG.GET.{expected.stream}", body)
    if "error" not in reply:
        record = record_of_get(reply["message"])
        if record.data == data:
            return Ack(record.seq, duplicate=True)
    raise conflict


async def request_api(
    link: NatsConnection, operation: str, body: Any = None, *, timeout: float = 5.0
) -> dict[str, Any]:
    """Call the JetStream API and return the reply. Raises the ``StreamError`` kind of an error reply."""
    reply = await request_with_retry(link, operation, body, timeout=timeout)
    if "error" in reply:
        raise error_of(reply["error"], operation)
    return reply


async def last_record(
    link: NatsConnection, stream: str, filter: str, *, timeout: float = 5.0
) -> StoredRecord | None:
    """Return the last message whose subject matches, from the stream's leader."""
    reply = await request_with_retry(
        link, f"STREAM.MSG.GET.{stream}", {"last_by_subj": filter}, timeout=timeout
    )
    if "error" not in reply:
        return record_of_get(reply["message"])
    if reply["error"].get("err_code") == NO_MESSAGE:
        return None
    raise error_of(reply["error"], f"last {filter} in {stream}")


async def subject_counts(link: NatsConnection, stream: str, filter: str) -> dict[str, int]:
    """Return the number of messages of a stream under each subject that matches. Raises ``StreamError``."""
    found: dict[str, int] = {}
    while True:
        body = {"subjects_filter": filter, "offset": len(found)}
        info = await request_api(link, f"STREAM.INFO.{stream}", body)
        page: dict[str, int] = info["state"].get("subjects") or {}
        found |= page
        if not page or len(found) >= info.get("total", 0):
            return found


async def records(
    link: NatsConnection, stream: str, filter: str, *, after: int = 0, timeout: float = 10.0
) -> AsyncIterator[StoredRecord]:
    """Yield all stored messages that match with a sequence above ``after``, in order, by batched direct gets.

    Raises ``StreamUnavailable`` if the stream does not answer for ``timeout`` seconds.
    """
    position = after
    more = True
    while more:
        page, more = await _page(link, stream, filter, position, timeout)
        for record in page:
            position = record.seq
            yield record


async def _page(
    link: NatsConnection, stream: str, filter: str, after: int, timeout: float
) -> tuple[list[StoredRecord], bool]:
    """Return a page, and whether another page may follow. A page that was interrupted has the messages received
    so far.
    """

    async def attempt(_remaining: float) -> tuple[list[StoredRecord], bool]:
        page: list[StoredRecord] = []
        try:
            more = await _collect(link, stream, filter, after, page)
        except (CallTimeout, ConnectionLost):
            if not page:
                raise
            return page, True
        return page, more

    result: tuple[list[StoredRecord], bool] = await retry_until_done(
        link, attempt, timeout=timeout, what=f"read {filter} in {stream}"
    )
    return result


async def _collect(
    link: NatsConnection, stream: str, filter: str, after: int, page: list[StoredRecord]
) -> bool:
    """Fill ``page`` from one batched request. Return True if more messages follow."""
    request = {"seq": after + 1, "next_by_subj": filter, "batch": _PAGE, "max_bytes": _PAGE_BYTES}
    async with ReplyReader(
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


class ReplyReader:
    """A request with several replies: ``next`` waits for one. The request ends with the block."""

    def __init__(
        self,
        link: NatsConnection,
        subject: str,
        data: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        fragile: bool = False,
    ) -> None:
        self._link = link
        self._subject = subject
        self._data = data
        self._headers = headers
        self._box = Mailbox(link, subject, fragile=fragile)
        self._inbox = ""

    async def __aenter__(self) -> "ReplyReader":
        """Send the request. Raises ``ConnectionFailed``."""
        await self._link.wait_connected(self._link.settings.drain_timeout)
        self._inbox = self._link.open_inbox(self._box.put)
        await self._link.publish(self._subject, self._data, reply=self._inbox, headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._link.close_inbox(self._inbox)
        self._box.close()

    async def next(self, timeout: float) -> Msg:
        """Return the next reply. Raises ``CallTimeout``, ``NoResponders``, ``ConnectionLost`` (fragile only)."""
        return await self._box.get(timeout)
