"""One subscription of a socket: finds what it watches, then sends its events until the socket or the client ends it."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing

import anyio

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import is_home_owner
from trunkline.contracts.turns.feed_merge import parse_position
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.sender import Sender
from trunkline.workers.gateway.socket.codec import encode_envelope, now
from trunkline.workers.gateway.socket.envelopes import ResyncEnvelope, ResyncPayload, Subscribe
from trunkline.workers.gateway.socket.registry import SocketRegistry
from trunkline.workers.gateway.socket.turn_envelopes import TurnPlace
from trunkline_bus import background_tasks, new_id

Send = Callable[[str], Awaitable[None]]


class SocketSubscription:
    """Sends the events of what a client watches. ``send`` waits until the client has room for more."""

    def __init__(self, registry: SocketRegistry, sender: Sender, command: Subscribe, send: Send) -> None:
        self.id = command.id
        self._registry = registry
        self._sender = sender
        self._wanted = command.payload
        self._send = send
        self._block = ""

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
            self._block = (await services.messages.find(wanted.turn, self._sender)).request.block
        elif wanted.conversation is not None:
            self._block = await services.conversations.require(
                wanted.conversation, self._sender, TokenScope.READ
            )
            if len(wanted.after) > 1:
                raise InvalidField(("payload", "after"), "For a conversation, name one turn.")
        else:
            raise InvalidField(("payload", "turn"), "Name a turn or a conversation.")

    async def run(self) -> None:
        """Send the events until all have been sent. Raises what the reader raises, and Refusal with ``not_found`` when
        the block is no longer shared with the client."""
        lost = False

        async def wait_until_lost() -> None:
            nonlocal lost
            await self._registry.services.access.wait_until_lost(self._sender.identity, self._block)
            lost = True
            watching.cancel()

        async with background_tasks() as tasks:
            with anyio.CancelScope() as watching:
                tasks.start_soon(wait_until_lost)
                await self._watch()
        if lost:
            raise refusal(ErrorCode.NOT_FOUND)

    async def _watch(self) -> None:
        wanted = self._wanted
        if wanted.turn is not None:
            state = await self._registry.services.messages.find(wanted.turn, self._sender)
            await self._send_turn(TurnPlace(self._block, state.request.conversation, wanted.turn))
        elif wanted.conversation is not None:
            await self._send_conversation(wanted.conversation)

    async def _send_conversation(self, conversation: str) -> None:
        first = next(iter(self._wanted.after), None)
        async with aclosing(self._registry.turns.watch(conversation, first)) as turns:
            async for turn in turns:
                await self._send_turn(TurnPlace(self._block, conversation, turn))

    async def _send_turn(self, place: TurnPlace) -> None:
        position = self._wanted.after.get(place.turn, "")
        is_owner = is_home_owner(self._sender.identity)
        async with aclosing(self._registry.feeds.watch(place, position)) as entries:
            async for entry in entries:
                if entry is None:
                    await self._send(self._resync(place.turn, position))
                else:
                    position = entry.position
                    await self._send(entry.text_for_owner if is_owner else entry.text)

    def _resync(self, turn: str, position: str) -> str:
        payload = ResyncPayload(subscription=self.id, turn=turn, position=position)
        return encode_envelope(ResyncEnvelope(id=new_id("env"), timestamp=now(), payload=payload))
