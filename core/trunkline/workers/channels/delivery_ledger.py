"""The delivery ledger: what a channel sends is recorded before and after, so that no crash loses or repeats it
(ADR 86).

A *delivery* is one answer or notice in one chat; it consists of *posts*, the messages of the service that show it.
"""

import hashlib
from abc import ABC, abstractmethod
from collections import defaultdict

import anyio
import msgspec

from trunkline.contracts.channels.records import ChannelRecord, ChannelRecords
from trunkline.errors import TrunklineError

KEPT_SECONDS = 2 * 86_400.0
"""Seconds for which a finished delivery is remembered: longer than a service repeats what it delivers to us."""


class PostRefused(TrunklineError):
    """The service refused a post, so that nobody sees it. Any other error leaves open whether somebody does."""


class UnfinishedPost(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A post that was about to be sent. ``mark`` is what ``PostService.mark`` returned before. ``is_file`` marks a post
    that shows a file.
    """

    content: str
    mark: str = ""
    is_file: bool = False


class DeliveryState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A delivery. ``place`` is the chat; ``conversation`` and ``turn`` are what an answer answers, "" for a notice;
    ``details`` is whatever the channel needs to go on after a restart. ``posts`` are the ids that the service gave, in
    their order, of the posts that show the text; ``files`` are those of the posts that show a file, "" for a file that
    was refused.
    """

    id: str
    place: str
    conversation: str = ""
    turn: str = ""
    details: dict[str, str] = {}
    posts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    unfinished: UnfinishedPost | None = None
    done: bool = False


class PostService(ABC):
    """The service to which a channel sends posts.

    Guarantees: no method runs twice at a time for one place.

    Not guaranteed: that the process which sent a post is the one that looks for it.
    """

    @abstractmethod
    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        """Send a post and return the id that the service gave to it.

        Raises:
            PostRefused: the service refused it. Nobody sees it.
            Exception: whether somebody sees the post is not known. It is looked for before anything else is sent to
                this place.
        """

    @abstractmethod
    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        """Return the id of a post that may have been sent; None if it was not, so that it is sent again.

        A service that cannot tell decides here between a loss and a repetition: None repeats, "" loses.

        Raises:
            Exception: this cannot be found out now. Nothing is sent to this place.
        """

    def mark(self, place: str) -> str:
        """Return what ``find`` needs to know of the place as it is before a post, such as the newest id. "" unless
        overridden. Raises nothing.
        """
        return ""


class OutboundDelivery:
    """One answer or notice that is being sent.

    Guarantees: a post is sent once, whichever process is killed at any step, as far as ``PostService.find`` can tell.

    Not guaranteed: a place among the posts of other deliveries to the same chat.
    """

    def __init__(self, ledger: "DeliveryLedger", record: ChannelRecord[DeliveryState]) -> None:
        self._ledger = ledger
        self._record = record

    @property
    def state(self) -> DeliveryState:
        """The delivery as it is recorded. Raises nothing."""
        return self._record.value

    async def post(self, content: str) -> str:
        """Send one more post and return its id. If an earlier attempt turns out to have succeeded, return the id of
        that post, whose content may differ.

        Raises:
            PostRefused: the service refused it.
            RecordChanged: another process goes on with this delivery.
            Exception: as ``PostService.post`` and ``PostService.find``. Call again to look for the post, and to send it
                if nobody sees it.
        """
        return await self._post(content, is_file=False)

    async def post_file(self, number: int, content: str) -> str:
        """Send file ``number`` of this delivery, from 0, in a post of its own, unless that was done; return the id of
        the post. Files are sent in their order. ``content`` names the file: keep its bytes elsewhere, because the
        record of a post is small. A refused file stays refused, with the id "".

        Raises as ``post`` does.
        """
        if number < len(self.state.files):
            return self.state.files[number]
        return await self._post(content, is_file=True)

    async def _post(self, content: str, *, is_file: bool) -> str:
        before = len(self._ids(is_file=is_file))  # while this waits, another delivery may settle this one
        async with self._ledger.locked(self.state.place):
            await self._ledger.settle(self.state.place)
            if len(self._ids(is_file=is_file)) > before:
                return self._ids(is_file=is_file)[-1]
            mark = self._ledger.service.mark(self.state.place)
            post = UnfinishedPost(content=content, mark=mark, is_file=is_file)
            await self.write(unfinished=post)
            try:
                id = await self._ledger.service.post(self.state.place, content, self.state)
            except PostRefused:
                await self._finish_post(post, "" if is_file else None)
                raise
            except BaseException:
                self._ledger.leave_open(self)
                raise
            await self._finish_post(post, id)
            return id

    def _ids(self, *, is_file: bool) -> tuple[str, ...]:
        return self.state.files if is_file else self.state.posts

    async def _finish_post(self, post: UnfinishedPost, id: str | None) -> None:
        """Record the id of a post, None if nobody sees it."""
        found = () if id is None else (id,)
        if post.is_file:
            await self.write(unfinished=None, files=(*self.state.files, *found))
        else:
            await self.write(unfinished=None, posts=(*self.state.posts, *found))

    async def settle(self) -> None:
        """Find out whether an unfinished post was sent, and record it. No post to the place is sent meanwhile. Raises
        as ``post`` does.
        """
        async with self._ledger.locked(self.state.place):
            await self.settle_locked()

    async def settle_locked(self) -> None:
        """Do what ``settle`` does, for a caller that holds the lock of the place. Raises as ``post`` does."""
        unfinished = self.state.unfinished
        if unfinished is None:
            return
        id = await self._ledger.service.find(self.state.place, unfinished, self.state)
        await self._finish_post(unfinished, id)

    async def move(self, place: str) -> None:
        """Continue in another place: the service moved the chat. Raises RecordChanged as ``post`` does."""
        await self.write(place=place)

    async def forget_last(self) -> None:
        """Record that the last post no longer exists. Raises RecordChanged as ``post`` does."""
        await self.write(posts=self.state.posts[:-1])

    async def finish(self) -> None:
        """Record that everything is sent. Raises RecordChanged as ``post`` does."""
        await self.write(done=True)
        self._ledger.forget(self)

    async def write(self, **changes: object) -> None:
        """Record changes of the state. Raises RecordChanged as ``post`` does."""
        state = msgspec.structs.replace(self.state, **changes)
        key, revision = self._record.key, self._record.revision
        ttl = KEPT_SECONDS if state.done else None
        revision = await self._ledger.records.put(key, state, revision=revision, ttl=ttl)
        self._record = ChannelRecord(key, state, revision)


class DeliveryLedger:
    """The deliveries of one account.

    Guarantees: ``open`` with the same id returns the same delivery, in any process, until ``KEPT_SECONDS`` after it is
    finished. Posts to one place are sent one after another.

    Not guaranteed: more than one process at a time: hold an ``AccountLease``.

    Args:
        account: A word of a-z, 0-9, ``-`` and ``_`` that names the account.
    """

    def __init__(self, records: ChannelRecords, account: str, service: PostService) -> None:
        self.records = records
        self.service = service
        self._prefix = f"delivery.{account}"
        self._locks: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._left_open: dict[str, list[OutboundDelivery]] = {}
        self._current: dict[str, OutboundDelivery] = {}

    async def open(self, state: DeliveryState) -> OutboundDelivery:
        """Return the delivery with the id of ``state``, which is recorded with this state if it is new. Raises
        RecordChanged if another process records it at the same time.
        """
        known = await self.find(state.id)
        if known is not None:
            return known
        key = self._key(state.id)
        revision = await self.records.put(key, state, revision=0)
        return self._shared(ChannelRecord(key, state, revision))

    async def find(self, id: str) -> OutboundDelivery | None:
        """Return the delivery with this id; None if there is none. Raises nothing besides the errors of the records."""
        record = await self.records.get(self._key(id), DeliveryState)
        return self._shared(record) if record is not None else None

    async def recover(self) -> list[OutboundDelivery]:
        """Return the deliveries that a former process did not finish, with every unfinished post settled before the
        next post is sent to its place. Raises nothing besides the errors of the records.
        """
        records = await self.records.list(self._prefix, DeliveryState)
        deliveries = [self._shared(record) for record in records]
        for delivery in deliveries:
            if delivery.state.unfinished is not None:
                self.leave_open(delivery)
        return [delivery for delivery in deliveries if not delivery.state.done]

    def forget(self, delivery: OutboundDelivery) -> None:
        """Forget a delivery that is finished. Raises nothing."""
        self._current.pop(delivery.state.id, None)

    def _shared(self, record: ChannelRecord[DeliveryState]) -> OutboundDelivery:
        """Return the one object of a delivery, so that two users of it know the same revision."""
        if record.value.done:
            return OutboundDelivery(self, record)
        return self._current.setdefault(record.value.id, OutboundDelivery(self, record))

    def locked(self, place: str) -> anyio.Lock:
        """Return the lock of a place. Raises nothing."""
        return self._locks[place]

    def leave_open(self, delivery: OutboundDelivery) -> None:
        """Settle this delivery before the next post to its place. Raises nothing."""
        self._left_open.setdefault(delivery.state.place, []).append(delivery)

    async def settle(self, place: str) -> None:
        """Settle what was left open in a place. Raises as ``OutboundDelivery.post`` does."""
        left = self._left_open.get(place, [])
        while left:
            await left[0].settle_locked()
            left.pop(0)
        self._left_open.pop(place, None)

    def _key(self, id: str) -> str:
        return f"{self._prefix}.{hashlib.sha256(id.encode()).hexdigest()[:32]}"
