"""One session of the account: from the moment at which this process has the lease until it is cancelled."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio
import msgspec

from trunkline import Unavailable
from trunkline.api.channel import (
    AccountReport,
    AccountSession,
    ChatAccount,
    ChatMessage,
    FileRefused,
    Gateway,
    IncomingFile,
    Sentences,
    parse_chat_command,
    parse_decision,
)
from trunkline_matrix.client import AWAY, JoinedRoom, MatrixClient, MatrixRefused, SyncBatch
from trunkline_matrix.content import REACTIONS, plain_contents, plain_reaction
from trunkline_matrix.posts import MatrixPosts
from trunkline_matrix.room_events import (
    MatrixFile,
    MatrixMessage,
    MatrixReaction,
    RoomInvitation,
    addressed_text,
    has_just_joined,
    parse_event,
    parse_invitation,
    since_invited,
)
from trunkline_matrix.rooms import Rooms
from trunkline_matrix.settings import MatrixSettings, key

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between two attempts to reach the homeserver: doubled each time."""

MARGIN = 60.0
"""Seconds before the first start of which messages are taken."""

MEDIA_LIMIT = 20 * 1024 * 1024
"""Bytes of the largest file of a person that is read."""

TOO_LARGE = "This file is larger than 20 MB. Send a smaller one, or put it into the workspace."
LOST = "The homeserver does not return this file. Send it again."
UNREACHED = (
    "Matrix sends nothing to the owner: nobody is linked to the account, and nobody in channels.matrix.owners has a "
    "room in which nobody else is and which is not encrypted."
)


class SyncPosition(msgspec.Struct, frozen=True, kw_only=True):
    """Up to where everything is taken: ``since`` of the next request."""

    since: str


class MatrixSession(AccountSession):
    """Takes messages to the gateway, and answers to the homeserver."""

    def __init__(
        self,
        settings: MatrixSettings,
        gateway: Gateway,
        client: MatrixClient,
        account: str,
        report: AccountReport,
    ) -> None:
        self._settings = settings
        self._client = client
        self._report = report
        self._records = gateway.records()
        self._position_key = f"sync.{account}"
        self._rooms = Rooms(client, self._records, account)
        super().__init__(
            gateway,
            MatrixPosts(client, self._rooms, gateway.file),
            ChatAccount(
                channel="matrix",
                id=account,
                owners=settings.owners,
                unreached=UNREACHED,
                block=settings.block,
                edit_seconds=settings.edit_seconds,
                before="",
            ),
        )

    async def run(self, *, started: Callable[[], Awaitable[None]]) -> None:
        """Serve as every session does. Raises ConfigError if the homeserver refuses the token, however many calls fail
        by that.
        """
        try:
            await super().run(started=started)
        except Exception:
            if self._client.refusal is not None:
                raise self._client.refusal from None
            raise

    async def receive(self) -> None:
        """Take what is new, and record the position afterwards: what was taken in part is taken again."""
        record = await self._records.get(self._position_key, SyncPosition)
        since = record.value.since if record is not None else ""
        pause = FIRST_PAUSE
        has_rooms = False
        while True:
            try:
                if not has_rooms:
                    for owner in self._settings.owners:
                        await self._rooms.room_of(owner)
                    has_rooms = True
                batch = await self._client.sync(since, self._settings.sync_seconds)
                await self._take_batch(batch, since)
            except (*AWAY, MatrixRefused) as error:
                await self._report.failing("the homeserver does not answer")
                log.warning("the homeserver does not answer; the next attempt is in %g s: %s", pause, error)
                await anyio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            if batch.next_batch != since:
                since = batch.next_batch
                await self._records.put(self._position_key, SyncPosition(since=since))
            await self._report.serving()
            pause = FIRST_PAUSE

    async def _take_batch(self, batch: SyncBatch, since: str) -> None:
        for room in (*batch.rooms.leave, *batch.rooms.invite):
            self._rooms.forget(room)
        for room, joined in batch.rooms.join.items():
            try:
                await self._take_room(room, joined, since)
            except MatrixRefused as refused:  # the account was removed meanwhile
                log.warning("the room %s cannot be read: %s", room, refused)
        for room, invited in batch.rooms.invite.items():
            invitation = parse_invitation(invited.invite_state.events, self._client.id)
            if invitation is not None:
                await self._take_invitation(room, invitation)

    # Rooms ------------------------------------------------------------------------------------------------------

    async def _take_room(self, room: str, joined: JoinedRoom, since: str) -> None:
        changes = [*joined.state.events, *joined.timeline.events]
        if any(one.get("type") in ("m.room.member", "m.room.encryption") for one in changes):
            self._rooms.forget(room)
        is_new = has_just_joined(changes, self._client.id)
        events: Sequence[Mapping[str, Any]] = joined.timeline.events
        if not since:  # on its first start the account answers nothing old
            latest = (time.time() - MARGIN) * 1000
            events = [one for one in events if one.get("origin_server_ts", 0) >= latest]
        elif joined.timeline.limited and joined.timeline.prev_batch:
            begin = "" if is_new else since
            missed = await self._client.messages(room, joined.timeline.prev_batch, begin)
            events = [*reversed(missed), *events]
        if is_new:
            events = since_invited(events, self._client.id)
        for raw in events:
            await self._take_event(room, raw)

    async def _take_event(self, room: str, raw: Mapping[str, Any]) -> None:
        if raw.get("type") == "m.room.encryption":
            await self._refuse_encrypted(room)
            return
        event = parse_event(raw)
        if isinstance(event, MatrixReaction) and event.sender != self._client.id:
            await self._take_reaction(room, event)
        elif isinstance(event, MatrixMessage) and event.sender != self._client.id:
            await self._take_message(room, event)

    async def _take_invitation(self, room: str, invitation: RoomInvitation) -> None:
        """Accept an invitation of the owner, or of who names a code that counts; decline others, and say why once."""
        codes = [
            words
            for words in invitation.words
            if self.has_code(ChatMessage(id="", chat="", place="", text=words))
        ]
        try:
            if invitation.is_encrypted:
                await self._client.leave(room, self.gateway.sentences("message.encrypted"))
            elif await self._serves(invitation.inviter):
                await self._client.join(room)
            elif codes:
                await self._link_by_invitation(room, invitation, codes[0])
            else:
                private = self.gateway.sentences("person.private.account", channel="matrix")
                is_new = await self.chats.meet_stranger(key(invitation.inviter))
                await self._client.leave(room, private if is_new else "")
        except MatrixRefused as refused:
            log.info("an invitation was withdrawn: %s", refused)

    async def _link_by_invitation(self, room: str, invitation: RoomInvitation, code: str) -> None:
        """Link who invites the account to a private room with a code as the reason or as the room's name."""
        await self._client.join(room)
        private = await self._rooms.is_private(room, invitation.inviter)
        message = ChatMessage(
            id=f"invitation:{room}", chat=_chat_key(room), place=invitation.inviter, text=code
        )
        if not private or not await self.link(message, invitation.inviter, invitation.inviter):
            await self._client.leave(room, self.gateway.sentences("person.no_code", channel="matrix"))

    async def _refuse_encrypted(self, room: str) -> None:
        """Say once that a room cannot be used. This is the only text that an encrypted room gets."""
        if await self.chats.meet_stranger(f"encrypted-{key(room)}"):
            await self._say(room, self.gateway.sentences("message.encrypted"))

    # Messages ---------------------------------------------------------------------------------------------------

    async def _take_message(self, room: str, incoming: MatrixMessage) -> None:
        """Bring one message to where no crash loses it."""
        facts = await self._rooms.facts(room)
        if incoming.kind == "encrypted" or facts.is_encrypted:
            await self._refuse_encrypted(room)
            return
        message = self._message(room, incoming, is_private=facts.has_two)
        private = replace(message, place=incoming.sender, details={})
        if facts.has_two and await self.link(private, incoming.sender, incoming.sender):
            return
        is_addressed = self._client.id in incoming.mentions or self._addressed(incoming.text)[0]
        if not await self._serves(incoming.sender):
            if facts.has_two:
                await self._meet_stranger(room, incoming, message)
        elif facts.has_two or (self._settings.mentions and is_addressed):
            await self.answer(message)

    async def _serves(self, user: str) -> bool:
        return user in self._settings.owners or await self.is_linked(user)

    async def _meet_stranger(self, room: str, incoming: MatrixMessage, message: ChatMessage) -> None:
        """Say each sentence once to a stranger. This asks no model and keeps a bounded list."""
        key_of, about = (
            ("person.no_code", "-code") if self.has_code(message) else ("person.private.account", "")
        )
        text = self.gateway.sentences(key_of, channel="matrix")
        if await self.chats.meet_stranger(f"{key(incoming.sender)}{about}"):
            await self._say(room, text)

    async def _say(self, room: str, text: str) -> None:
        try:
            await self._client.send(room, plain_contents(text)[0].event())
        except (MatrixRefused, *AWAY) as error:
            log.info("a sentence was not said in room %s: %s", room, error)

    async def _take_reaction(self, room: str, reaction: MatrixReaction) -> None:
        """Take a reaction to an approval as the words that it stands for."""
        if not await self._serves(reaction.sender) or not await self._rooms.is_private(room, reaction.sender):
            return
        try:
            post = await self._client.event(room, reaction.target)
        except MatrixRefused:
            return
        meanings = (post.get("content") or {}).get(REACTIONS) or {}
        words = meanings.get(plain_reaction(reaction.key)) if post.get("sender") == self._client.id else None
        if words:
            await self.answer(
                ChatMessage(id=f"reaction:{reaction.id}", chat=_chat_key(room), place=room, text=words)
            )

    def _addressed(self, text: str) -> tuple[bool, str]:
        return addressed_text(text, self._client.id, self._client.name)

    def _message(self, room: str, incoming: MatrixMessage, *, is_private: bool) -> ChatMessage:
        """Return a message as it is answered: in its thread and, among other people, as a reply."""
        written = (
            incoming.text if is_private or incoming.kind != "text" else self._addressed(incoming.text)[1]
        )
        command, text = parse_chat_command(written)
        say = self.gateway.sentences
        decides = command in ("approve", "deny") or parse_decision(text, say=say) is not None
        reply = say("message.alone") if decides and not is_private else _reply(incoming, say)

        async def files() -> list[IncomingFile]:
            return [await self._download(incoming.file)] if incoming.file is not None else []

        return ChatMessage(
            id=f"message:{incoming.id}" if incoming.kind != "edited" else f"edited:{incoming.text}",
            chat=_chat_key(room, incoming.thread),
            place=f"{room} {incoming.thread}".strip(),
            text=text,
            command=command,
            reply=reply,
            files=files if incoming.file is not None else None,
            details={} if is_private else {"reply_to": incoming.id},
        )

    async def _download(self, file: MatrixFile) -> IncomingFile:
        """Return a file of a message. Raises FileRefused or Unavailable, as ``ChatMessage.files`` does."""
        if file.size > MEDIA_LIMIT:
            raise FileRefused(TOO_LARGE)
        try:
            data = await self._client.download(file.server, file.media, MEDIA_LIMIT)
        except MatrixRefused as refused:
            raise FileRefused(LOST) from refused
        except AWAY as error:
            raise Unavailable(f"The homeserver does not return a file: {error}") from error
        if data is None:
            raise FileRefused(TOO_LARGE)
        return IncomingFile(file.name, file.media_type, data, is_voice=file.is_voice)


def _reply(incoming: MatrixMessage, say: Sentences) -> str:
    """Return what answers a message without an agent, "" if an agent does."""
    if incoming.kind == "edited":
        return say("message.edited")
    return say("message.unsupported", kind=incoming.text) if incoming.kind == "unsupported" else ""


def _chat_key(room: str, thread: str = "") -> str:
    return f"{key(room)}.{key(thread) if thread else 'room'}"
