"""The posts of the account in its rooms: the service behind the delivery ledger.

The nonce of a post is recorded before the post is sent. It is in the event, and it is the transaction id, for which a
homeserver returns the same event again. So an unfinished post is looked for in the room, and if it is not there, it is
sent again in the same transaction.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import uuid4

from trunkline import RemoteFault
from trunkline.api.channel import Attachment, Button, ChatPosts, DeliveryState, PostRefused, UnfinishedPost
from trunkline_matrix.client import AWAY, MatrixClient, MatrixRefused
from trunkline_matrix.content import (
    DELIVERY,
    MatrixContent,
    decode_content,
    file_event,
    markdown_contents,
    plain_contents,
)
from trunkline_matrix.rooms import Rooms

log = logging.getLogger(__name__)


class MatrixPosts(ChatPosts):
    """Sends and edits messages of the account. A place is ``ROOM`` or ``ROOM THREAD``, or the id of an owner for what
    nobody else may read. The id of a post is ``ROOM EVENT``, followed by the owner for such a post. A mark is a nonce.
    """

    away = AWAY

    def __init__(
        self, client: MatrixClient, rooms: Rooms, read_file: Callable[[Attachment], Awaitable[bytes]]
    ) -> None:
        super().__init__()
        self._client = client
        self._rooms = rooms
        self._read_file = read_file

    def mark(self, place: str) -> str:
        """Return a new nonce."""
        return uuid4().hex

    def draw(self, markdown: str) -> Sequence[str]:
        """Return the contents that show a Markdown text."""
        return [content.encode() for content in markdown_contents(markdown)]

    def plain(self, text: str, buttons: Sequence[Button] = ()) -> Sequence[str]:
        """Return the contents that show a text as it is; the last one says what reactions mean."""
        return [content.encode() for content in plain_contents(text, buttons)]

    def draw_file(self, file: Attachment) -> str:
        """Return the content that shows a file, "" if it is too large for the homeserver."""
        limit = self._client.upload_limit
        return MatrixContent(file=file).encode() if not limit or file.size <= limit else ""

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        """Send a message. Raises as ``PostService.post`` does."""
        nonce = delivery.unfinished.mark if delivery.unfinished is not None else uuid4().hex
        return await self._send(await self._room(place), place, content, delivery, nonce)

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        """Look for a message, and send it if it is not there. Raises as ``PostService.find`` does."""
        try:
            room = await self._room(place)
            for raw in await self._client.messages(room, own=True):
                if (raw.get("content") or {}).get(DELIVERY) == post.mark:
                    return _id(room, str(raw["event_id"]), place)
            return await self._send(room, place, post.content, delivery, post.mark)
        except (MatrixRefused, PostRefused):
            return None

    async def _room(self, place: str) -> str:
        """Return the room of a place. Raises PostRefused if a text there might be read by others."""
        if place.startswith("@"):
            room = await self._rooms.room_of(place)
            if room is None:
                raise PostRefused(f"There is no room in which {place} is alone with {self._client.id}.")
            return room
        room = place.partition(" ")[0]
        try:
            facts = await self._rooms.facts(room)
        except MatrixRefused as refused:
            raise PostRefused(f"The homeserver shows nothing of the room {room}: {refused}") from refused
        if facts.is_encrypted:
            raise PostRefused(f"The room {room} is encrypted, so nothing is sent there.")
        return room

    async def _send(self, room: str, place: str, content: str, delivery: DeliveryState, nonce: str) -> str:
        try:
            event = {
                **await self._event(decode_content(content)),
                DELIVERY: nonce,
                **_relation(place, delivery),
            }
            return _id(room, await self._client.send(room, event, nonce), place)
        except MatrixRefused as refused:
            raise PostRefused(f"The homeserver refuses a message to the room {room}: {refused}") from refused

    async def _event(self, content: MatrixContent) -> dict[str, Any]:
        if content.file is None:
            return content.event()
        file = content.file
        try:
            data = await self._read_file(file)
        except RemoteFault as fault:
            raise PostRefused(f"The file {file.name} is not sent: {fault.message}") from fault
        return file_event(file, await self._client.upload(file.name, file.media_type, data))

    async def edit(self, id: str, content: str) -> None:
        """Change what a post shows. A post that a person has deleted stays deleted, and what only the owner may read is
        not changed in a room that others can read.
        """
        room, event, owner = _parsed(id)
        try:
            if owner:
                is_safe = await self._rooms.is_private(room, owner)
            else:
                is_safe = not (await self._rooms.facts(room)).is_encrypted
            if is_safe:
                await self._client.send(room, decode_content(content).edit(event))
        except MatrixRefused as refused:
            log.info("a message of room %s was not changed: %s", room, refused)

    async def delete(self, id: str) -> None:
        """Delete a post."""
        room, event, _ = _parsed(id)
        try:
            await self._client.redact(room, event)
        except MatrixRefused as refused:
            log.info("a message of room %s was not deleted: %s", room, refused)

    async def type(self, delivery: DeliveryState) -> None:
        """Show that an answer is being written."""
        if not delivery.place.startswith("@"):
            await self._client.show_typing(delivery.place.partition(" ")[0], self.typing_seconds + 1)


def _relation(place: str, delivery: DeliveryState) -> dict[str, Any]:
    """Return the field that puts a message into its thread, or behind the message that it answers."""
    thread = place.partition(" ")[2]
    answered = {"m.in_reply_to": {"event_id": delivery.details.get("reply_to") or thread}}
    if thread:
        more = {"rel_type": "m.thread", "event_id": thread, "is_falling_back": True}
        return {"m.relates_to": {**more, **answered}}
    return {"m.relates_to": answered} if delivery.details.get("reply_to") else {}


def _id(room: str, event: str, place: str) -> str:
    return f"{room} {event} {place}" if place.startswith("@") else f"{room} {event}"


def _parsed(id: str) -> tuple[str, str, str]:
    room, event, *owner = id.split(" ")
    return room, event, owner[0] if owner else ""
