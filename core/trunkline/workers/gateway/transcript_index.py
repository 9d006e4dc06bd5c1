"""The conversation that a client's transcript continues, for clients that send all messages with every
request.

The transcript up to the end of a turn has a key: a chain of hashes over the messages, starting with the
sender and the block. The next request contains the same messages, so its key leads to that conversation and
turn. Nothing else is compared, so the chats of two people, or two different chats, never share a key. An
unknown transcript begins a new conversation. The first request that continues the end of a turn gets the
conversation, by compare-and-set; a second one gets a fork.
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
from trunkline.contracts.turns.journal_messages import ModelCallPlanned
from trunkline.workers.gateway.ids import turn_id
from trunkline.workers.gateway.turn_lookup import TurnLookup
from trunkline_bus import Bus, BusError, SequenceConflict, new_id

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ContinuedConversation:
    """The transcript is the whole conversation: the message continues it."""

    conversation: str


@dataclass(frozen=True, slots=True)
class ForkedConversation:
    """The transcript is the conversation before another message continued it: the message becomes a fork."""

    origin: ForkedFrom


class TranscriptIndex:
    """Looks up and records transcripts. When the bus does not answer, a transcript counts as unknown."""

    def __init__(self, bus: Bus, turns: TurnLookup) -> None:
        self._bucket = bus.kv(TRANSCRIPT_BUCKET)
        self._requests = bus.kv(REQUEST_BUCKET)
        self._turns = turns

    async def client_id_for(
        self, actor: str, block: str, request: Sequence[Message], conversation: str, *, is_repeat: bool
    ) -> str:
        """Return the client id of a request without one.

        A repeat gets the id of the last request with these messages, so that the same turn answers it. A
        client that sends the same request twice without marking the second one as a repeat gets two ids.
        """
        key = transcript_key(actor, f"{block} {conversation}", request)
        made = ClientRequest(client_id=new_id())
        try:
            known = await self._requests.get(key) if is_repeat else None
            if known is not None and known.value is not None:
                return known.value.client_id
            await self._requests.put(key, made)
        except BusError as error:
            log.warning(
                "a repeat of this request would become a second turn, because its id was not stored: %s",
                error,
            )
        return made.client_id

    async def find(
        self, actor: str, block: str, transcript: Sequence[Message], client_id: str
    ) -> ContinuedConversation | ForkedConversation | None:
        """Return the conversation that the transcript continues, for the message of this client id; None when
        unknown.

        Only one message gets a conversation. The same message gets the conversation again when it is repeated, for
        example after a crash.
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
            log.debug("another message continues %s", head.conversation)
        except BusError as error:
            log.warning("a transcript begins a new conversation, because it cannot be looked up: %s", error)
            return None
        return await self._fork(head)

    async def follow(
        self, conversation: str, turn: str, client_id: str
    ) -> ContinuedConversation | ForkedConversation | None:
        """Return the conversation that the message of this client id continues from the end of ``turn``, as ``find``
        does for a transcript; None when the turn cannot be continued. Raises BusError."""
        head, revision = TranscriptHead(conversation=conversation, turn=turn), 0
        key, following = (
            hashlib.sha256(f"turn.v1 {turn}".encode()).hexdigest(),
            turn_id(conversation, client_id),
        )
        entry = await self._bucket.get(key)
        if entry is not None and entry.value is not None:
            head, revision = entry.value, entry.revision
        if head.next == following:
            return ContinuedConversation(conversation)
        if not head.next and await self._is_last(head):
            try:
                claim = replace(head, next=following)
                await (
                    self._bucket.update(key, claim, revision) if revision else self._bucket.create(key, claim)
                )
                return ContinuedConversation(conversation)
            except SequenceConflict:
                log.debug("another message continues %s", conversation)
        return await self._fork(head)

    async def record(
        self, actor: str, block: str, transcript: Sequence[Message], conversation: str, turn: str
    ) -> None:
        """Record the transcript that a client has at the end of a turn. Call this method before the client receives
        the end."""
        head = TranscriptHead(conversation=conversation, turn=turn)
        try:
            await self._bucket.put(transcript_key(actor, block, transcript), head)
        except BusError as error:
            log.warning(
                "the transcript of %s was not stored, so the client's next request begins a new conversation: %s",
                turn,
                error,
            )

    async def _is_last(self, head: TranscriptHead) -> bool:
        """Report whether no message followed in the conversation, on any channel."""
        return await self._turns.newest_turn(head.conversation) in (head.turn, None)

    async def _fork(self, head: TranscriptHead) -> ForkedConversation | None:
        """Return a fork after the turn's last step; None when the turn has not ended or its journal is no longer
        stored."""
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
    """Return the last hash of the chain. White space around an answer does not count, because clients strip
    it."""
    link = hashlib.sha256(msgspec.json.encode(("transcript.v1", actor, block))).digest()
    for message in transcript:
        link = hashlib.sha256(link + msgspec.json.encode(_compared_fields(message), order="sorted")).digest()
    return link.hex()


def _compared_fields(message: Message) -> tuple[object, ...]:
    """Return the fields of a message that a client sends back."""
    content = message.content.strip() if message.role == "assistant" else message.content
    calls = [(call.id, call.name, call.arguments) for call in message.tool_calls]
    contents = [*(image.data for image in message.images), *(file.data for file in message.documents)]
    files = [hashlib.sha256(data).hexdigest() for data in contents]
    fields = (message.role, content, message.name, message.tool_call_id, calls)
    return (*fields, files) if files else fields
