"""Turns that no person began, put into the inbox as a due schedule is, and what their journals say."""

from collections.abc import Awaitable, Callable

import anyio
import msgspec

from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.feed_messages import TextDelta
from trunkline.contracts.turns.journal_messages import JournalEntry, TurnRecord
from trunkline.contracts.turns.lanes import Lane
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.subjects import INBOX, JOURNAL
from trunkline.testing.platform import BLOCK, CHANNEL, PlatformClient
from trunkline_bus import Scope, new_id


async def in_background(
    client: PlatformClient, text: str, *, block: str = BLOCK, lane: Lane | msgspec.UnsetType = msgspec.UNSET
) -> MessageAccepted:
    """Begin a turn in a new conversation; its lane is ``background`` by its trigger."""
    turn, conversation = new_id(), new_id()
    request = TurnRequested(
        turn=turn,
        block=block,
        conversation=conversation,
        message=Message(id=f"msg_{turn}", role="user", content=text),
        actor="owner",
        channel=CHANNEL,
        trigger="schedule",
        lane=lane,
        history=(),
        begins=True,
    )
    scope = Scope(block=block, conversation=conversation, turn=turn)
    await client.bus.append(INBOX, request, scope=scope, msg_id=turn, conversation=conversation)
    return MessageAccepted(block=block, conversation=conversation, turn=turn, message_id=request.message.id)


async def records_of(client: PlatformClient, accepted: MessageAccepted) -> list[TurnRecord]:
    """The records of a turn's journal so far."""
    keys = {"conversation": accepted.conversation, "turn": accepted.turn}
    return [stored.data async for stored in client.bus.history(JOURNAL, **keys)]


async def entries_of(client: PlatformClient, accepted: MessageAccepted) -> list[JournalEntry]:
    """The entries of a turn's journal so far."""
    return [entry for record in await records_of(client, accepted) for entry in record.entries]


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    """Wait until it holds."""
    with anyio.fail_after(seconds):
        while not await holds():  # noqa: ASYNC110 - the server tells nobody
            await anyio.sleep(0.02)


async def has(client: PlatformClient, accepted: MessageAccepted, kind: type[JournalEntry]) -> None:
    """Wait until the turn's journal has an entry of this kind."""

    async def _has() -> bool:
        return any(isinstance(entry, kind) for entry in await entries_of(client, accepted))

    await until(_has)


async def streams(client: PlatformClient, accepted: MessageAccepted) -> None:
    """Wait until the turn's answer streams."""
    with anyio.fail_after(60):
        async for event in client.gateway.watch(accepted.conversation, accepted.turn):
            if isinstance(event, TextDelta):
                return
