"""The rooms of the account: who is in them, and in which of them the owner is alone with the account."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import anyio
import msgspec

from trunkline.api.channel import ChannelRecords
from trunkline_matrix.client import MatrixClient, MatrixRefused
from trunkline_matrix.settings import key

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RoomFacts:
    """The members of a room, with ``join`` or ``invite`` for each, and whether it is encrypted."""

    members: Mapping[str, str]
    is_encrypted: bool

    @property
    def has_two(self) -> bool:
        """Report whether one person is alone with the account."""
        return len(self.members) == 2


class OwnerRoom(msgspec.Struct, frozen=True, kw_only=True):
    """The room in which an owner is told what nobody else may read."""

    room: str


class Rooms:
    """The rooms of one account.

    Guarantees: ``room_of`` returns only a room without encryption that the homeserver, asked in that moment, says to
    have no member and no invited person but the account and the owner.

    Not guaranteed: that nobody joins while a text is on its way there.
    """

    def __init__(self, client: MatrixClient, records: ChannelRecords, account: str) -> None:
        self._client = client
        self._records = records
        self._prefix = f"owner-room.{account}"
        self._known: dict[str, RoomFacts] = {}
        self._opening = anyio.Lock()

    async def facts(self, room: str) -> RoomFacts:
        """Return the facts of a room, as ``forget`` keeps it up to date. Raises as MatrixClient does."""
        return self._known.get(room) or await self._ask(room)

    def forget(self, room: str) -> None:
        """Ask again before the next use: the room has changed. Raises nothing."""
        self._known.pop(room, None)

    async def _ask(self, room: str) -> RoomFacts:
        facts = RoomFacts(await self._client.members(room), await self._client.is_encrypted(room))
        self._known[room] = facts
        return facts

    async def is_private(self, room: str, owner: str) -> bool:
        """Ask the homeserver whether nobody but this owner can read a room. Raises one of ``AWAY``."""
        try:
            facts = await self._ask(room)
        except MatrixRefused:
            return False  # the account is not in it
        wanted = facts.members.keys() == {self._client.id, owner}
        return wanted and facts.members[self._client.id] == "join" and not facts.is_encrypted

    async def room_of(self, owner: str) -> str | None:
        """Return the private room of an owner, which is opened if there is none; None if the owner left it, or the
        homeserver opens none. Raises one of ``AWAY``.
        """
        async with self._opening:
            record = await self._records.get(self._key(owner), OwnerRoom)
            known = record.value.room if record is not None else ""
            if known and await self.is_private(known, owner):
                return known
            room = await self._found(owner)
            if room is None and known and await self._has_left(known, owner):
                return None
            if room is None:
                room = await self._opened(owner)
            if room is not None:
                await self._records.put(self._key(owner), OwnerRoom(room=room))
            return room

    async def _found(self, owner: str) -> str | None:
        """Look for a private room, also for one that a process opened before it was killed."""
        for room in await self._client.rooms():
            if await self.is_private(room, owner):
                return room
        return None

    async def _has_left(self, room: str, owner: str) -> bool:
        try:
            return owner not in (await self.facts(room)).members
        except MatrixRefused:
            return False

    async def _opened(self, owner: str) -> str | None:
        try:
            room = await self._client.open_room(owner)
        except MatrixRefused as refused:
            log.warning("the homeserver opens no room with %s: %s", owner, refused)
            return None
        if await self.is_private(room, owner):
            return room
        log.warning(
            "the homeserver makes rooms with encryption or with other members, so %s cannot be told anything",
            owner,
        )
        return None

    def _key(self, owner: str) -> str:
        return f"{self._prefix}.{key(owner)}"
