"""Which conversation a client's transcript goes on with, for clients that send all messages with every request.

What a client was given up to the end of a turn has a key: a chain of hashes over the messages, begun with who asks and
the block. The next request brings these very messages, so its key names that conversation and turn. Nothing else is
compared, so no two people's and no two different chats are ever taken for one; what is not found begins anew. The first
to go on from the end of a turn gets the conversation, by compare-and-set; whoever comes from there again gets a fork.
"""

import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from trunkline.contracts.conversations.messages import ForkedFrom, Message
from trunkline.contracts.gateway.messages import ClientRequest, TranscriptHead
from trunkline.contracts.gateway.subjects import REQUEST_BUCKET, TRANSCRIPT_BUCKET
from trunkline.contracts.turns.messages import ModelCallPlanned
from trunkline.workers.gateway.ids import turn_id
from trunkline.workers.gateway.turn_lookup import TurnLookup
from trunkline_bus import Bus, BusError, SequenceConflict, new_id

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ContinuedConversation:
    """The transcript is all of this conversation."""

    conversation: str


@dataclass(frozen=True, slots=True)
class ForkedConversation:
    """The transcript is what a conversation held before somebody else went on with it."""

    origin: ForkedFrom


class TranscriptIndex:
    """Finds and keeps the ends of transcripts. What the bus cannot tell is not recognised."""

    def __init__(self, bus: Bus, turns: TurnLookup) -> None:
        self._bucket = bus.kv(TRANSCRIPT_BUCKET)
        self._requests = bus.kv(REQUEST_BUCKET)
        self._turns = turns

    async def client_id_for(
        self, actor: str, block: str, request: Sequence[Message], conversation: str, *, is_repeat: bool
    ) -> str:
        """The client id of a request without one. A repeat has that of the last request with these messages, so that
        it is answered by the same turn; a client that asks the same twice and says nothing has two."""
        key = transcript_key(actor, f"{block} {conversation}", request)
        made = ClientRequest(client_id=new_id())
        try:
            known = await self._requests.get(key) if is_repeat else None
            if known is not None and known.value is not None:
                return known.value.client_id
            await self._requests.put(key, made)
        except BusError as error:
            log.warning("a client's repeat of its request would be a second turn: %s", error)
        return made.client_id

    async def find(
        self, actor: str, block: str, transcript: Sequence[Message], client_id: str
    ) -> ContinuedConversation | ForkedConversation | None:
        """What the transcript goes on with, for the message of this client id; None when it is not known.

        A conversation is given to one message only. The same one may come again, as after a crash.
        """
        key = transcript_key(actor, block, transcript)
        try:
            entry = await self._bucket.get(key)
            if entry is None or entry.value is None:
                return None
            head = entry.value
            turn = turn_id(head.conversation, client_id)
            if head.next == turn:
                return ContinuedConversation(head.conversation)
            if not head.next and await self._is_last(head):
                await self._bucket.update(key, replace(head, next=turn), entry.revision)
                return ContinuedConversation(head.conversation)
        except SequenceConflict:
            log.debug("another message goes on with %s", head.conversation)
        except BusError as error:
            log.warning("a transcript is taken for a new one, because its end cannot be looked up: %s", error)
            return None
        return await self._fork(head)

    async def record(
        self, actor: str, block: str, transcript: Sequence[Message], conversation: str, turn: str
    ) -> None:
        """Note what the client has been given at the end of a turn. Called before the client is told of the end."""
        head = TranscriptHead(conversation=conversation, turn=turn)
        try:
            await self._bucket.put(transcript_key(actor, block, transcript), head)
        except BusError as error:
            log.warning("the end of %s is not kept, so a client's next request begins anew: %s", turn, error)

    async def _is_last(self, head: TranscriptHead) -> bool:
        """Report whether nobody said anything in the conversation since, on any channel."""
        return await self._turns.newest_turn(head.conversation) in (head.turn, None)

    async def _fork(self, head: TranscriptHead) -> ForkedConversation | None:
        """From behind the turn's last step. A turn whose journal is gone, or that has not ended, cannot be forked."""
        state = await self._turns.find(head.turn)
        if state is None or state.finished is None:
            return None
        steps = [entry.step for entry in state.entries if isinstance(entry, ModelCallPlanned)]
        if not steps:
            return None
        return ForkedConversation(
            ForkedFrom(conversation=head.conversation, turn=head.turn, step=max(steps) + 1)
        )


def transcript_key(actor: str, block: str, transcript: Iterable[Message]) -> str:
    """The end of the chain. White space around an answer does not count: clients cut it off."""
    link = hashlib.sha256(msgspec.json.encode(("transcript.v1", actor, block))).digest()
    for message in transcript:
        link = hashlib.sha256(link + msgspec.json.encode(_compared_fields(message), order="sorted")).digest()
    return link.hex()


def _compared_fields(message: Message) -> tuple[object, ...]:
    """What of a message a client sends back."""
    content = message.content.strip() if message.role == "assistant" else message.content
    calls = [(call.id, call.name, call.arguments) for call in message.tool_calls]
    return (message.role, content, message.name, message.tool_call_id, calls)
