"""One subscription of a socket: finds what it watches, then sends its events until the socket or the client ends it."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import anyio
from anyio.abc import TaskGroup

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import is_home_owner
from trunkline.contracts.turns.feed_merge import parse_position
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.sender import Sender
from trunkline.workers.gateway.socket.bounded_log import ReaderBehind
from trunkline.workers.gateway.socket.client_envelopes import Subscribe
from trunkline.workers.gateway.socket.codec import encode_envelope, now
from trunkline.workers.gateway.socket.platform_feed import PlatformEntry
from trunkline.workers.gateway.socket.registry import SocketRegistry
from trunkline.workers.gateway.socket.server_envelopes import ResyncEnvelope, ResyncPayload
from trunkline.workers.gateway.socket.turn_cursor import TurnCursor, TurnCursors
from trunkline.workers.gateway.socket.turn_envelopes import TurnPlace
from trunkline_bus import RemoteFault, background_tasks, new_id

log = logging.getLogger(__name__)

Send = Callable[[str], Awaitable[None]]


class SocketSubscription:
    """Sends the events of what a client watches. ``send`` waits until the client has room for more. ``cursors`` are
    those of all subscriptions of the socket.

    ``block`` is the block that is watched, in whole or in part; "" for every one. Cancel ``scope`` to end the
    subscription.
    """

    def __init__(
        self, registry: SocketRegistry, sender: Sender, command: Subscribe, cursors: TurnCursors, send: Send
    ) -> None:
        self.id = command.id
        self.block = ""
        self.scope = anyio.CancelScope()
        self._registry = registry
        self._sender = sender
        self._wanted = command.payload
        self._cursors = cursors
        self._send = send

    async def prepare(self) -> None:
        """Check what the client wants to watch. Raises Refusal as the same request over HTTP would."""
        wanted, services = self._wanted, self._registry.services
        named = [name for name in ("conversation", "turn", "block") if getattr(wanted, name) is not None]
        if len(named) > 1:
            raise InvalidField(("payload", named[1]), "Name one of conversation, turn and block.")
        for turn, position in wanted.after.items():
            try:
                parse_position(position)
            except ValueError as error:
                raise InvalidField(("payload", "after", turn), "It is the position of an event.") from error
        if wanted.turn is not None:
            self.block = (await services.messages.find(wanted.turn, self._sender)).request.block
        elif wanted.conversation is not None:
            self.block = await services.conversations.require(
                wanted.conversation, self._sender, TokenScope.READ
            )
            if len(wanted.after) > 1:
                raise InvalidField(("payload", "after"), "For a conversation, name one turn.")
        elif wanted.block is not None:
            self.block = (await services.blocks.get_block(wanted.block, self._sender)).name

    async def run(self) -> None:
        """Send the events until all have been sent. Raises what the reader raises, and Refusal with ``not_found`` when
        the block is no longer shared with the client."""
        if not self.block:  # what is sent of everything is checked one by one
            await self._watch()
        elif await self._is_lost_during(self.block, self._watch):
            raise refusal(ErrorCode.NOT_FOUND)

    async def _is_lost_during(self, block: str, watch: Callable[[], Awaitable[None]]) -> bool:
        """Watch while the client may read the block. Report whether it may not any more."""
        lost = False

        async def wait_until_lost() -> None:
            nonlocal lost
            await self._registry.services.access.wait_until_lost(self._sender.identity, block)
            lost = True
            watching.cancel()

        async with background_tasks() as tasks:
            with anyio.CancelScope() as watching:
                tasks.start_soon(wait_until_lost)
                await watch()
        return lost

    async def _watch(self) -> None:
        wanted = self._wanted
        if wanted.turn is not None:
            state = await self._registry.services.messages.find(wanted.turn, self._sender)
            await self._send_turn(TurnPlace(self.block, state.request.conversation, wanted.turn))
        elif wanted.conversation is not None:
            await self._send_conversation(wanted.conversation)
        else:
            await self._send_platform(wanted.block)

    async def _send_conversation(self, conversation: str) -> None:
        first = next(iter(self._wanted.after), None)
        async with aclosing(self._registry.turns.watch(conversation, first)) as turns:
            async for turn in turns:
                await self._send_turn(TurnPlace(self.block, conversation, turn))

    async def _send_platform(self, block: str | None) -> None:
        """Send the present states, then the changes, of a block or of everything."""
        if not self._wanted.events:  # an idle socket needs no task group
            return await self._send_states(block, None)
        async with background_tasks() as tasks:
            await self._send_states(block, tasks)

    async def _send_states(self, block: str | None, tasks: TaskGroup | None) -> None:
        """Send states and changes; with ``tasks`` also the events of each turn that they say to be running."""
        feed = (await self._registry.platform()).feed
        watched: set[str] = set()
        while True:
            number, states = feed.end, feed.states()
            try:
                for entry in states:
                    await self._send_entry(entry, block, tasks, watched)
                while True:
                    await self._send_entry(await feed.read(number), block, tasks, watched)
                    number += 1
            except ReaderBehind:
                await self._send(self._resync("", ""))

    async def _send_entry(
        self, entry: PlatformEntry, block: str | None, tasks: TaskGroup | None, watched: set[str]
    ) -> None:
        if block is not None and entry.block != block:
            return
        rights = await self._registry.services.access.rights_of(self._sender.identity)
        if not entry.is_for(rights):
            return
        await self._send(entry.text)
        place = entry.running
        if tasks is not None and place is not None and place.turn not in watched:
            watched.add(place.turn)
            tasks.start_soon(self._send_watched_turn, place, watched)

    async def _send_watched_turn(self, place: TurnPlace, watched: set[str]) -> None:
        """Send the events of one of many turns. That one of them cannot be read ends no other."""
        try:
            await self._is_lost_during(place.block, lambda: self._send_turn(place))
        except RemoteFault as error:
            log.info("the events of turn %s cannot be read: %s", place.turn, error)
        watched.discard(place.turn)

    async def _send_turn(self, place: TurnPlace) -> None:
        """Send the events of a turn, unless another subscription of the socket does: then wait until it ends."""
        with self._cursors.joined(place, self._wanted.after.get(place.turn)) as cursor:
            async with cursor.sending:
                while cursor.is_due:
                    with cursor.begun():
                        await self._send_from(cursor, place)

    async def _send_from(self, cursor: TurnCursor, place: TurnPlace) -> None:
        is_owner = is_home_owner(self._sender.identity)
        async with aclosing(self._registry.feeds.watch(place, cursor.position)) as entries:
            async for entry in entries:
                if entry is None:
                    await self._send(self._resync(place.turn, cursor.position))
                else:
                    await self._send(entry.text_for_owner if is_owner else entry.text)
                    cursor.note(entry.position, ends=entry.ends)

    def _resync(self, turn: str, position: str) -> str:
        payload = ResyncPayload(subscription=self.id, turn=turn, position=position)
        return encode_envelope(ResyncEnvelope(id=new_id("env"), timestamp=now(), payload=payload))
