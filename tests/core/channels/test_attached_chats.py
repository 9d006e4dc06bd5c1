"""Attached chats of the kit: every turn of the conversation is one delivery, in order, whichever process goes on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest

from trunkline.api.channel import (
    ASKED,
    AttachedChats,
    DeliveryLedger,
    DeliveryState,
    OutboundDelivery,
    PostService,
    UnfinishedPost,
)
from trunkline.api.gateway import SendMessage
from trunkline.api.testing import ScriptedGateway, wait_until

pytestmark = pytest.mark.anyio


class Crash(Exception):
    """The process ends here."""


@dataclass
class Board(PostService):
    """A service that keeps its posts."""

    posts: list[str] = field(default_factory=list)

    def mark(self, place: str) -> str:
        return str(len(self.posts))

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        self.posts.append(content)
        return str(len(self.posts))

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        return str(len(self.posts)) if len(self.posts) > int(post.mark) else None


@asynccontextmanager
async def process(gateway: ScriptedGateway, board: Board) -> AsyncIterator[AttachedChats]:
    """A process that shows attached chats on the board."""
    ledger = DeliveryLedger(gateway.records(), "acc", board)

    async def show(delivery: OutboundDelivery) -> None:
        if not delivery.state.posts:
            await delivery.post(delivery.state.details[ASKED])
        await delivery.finish()

    chats = AttachedChats(gateway, ledger, "board", "acc", show)
    left = await ledger.recover()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(chats.run, left)
            yield chats
            tasks.cancel_scope.cancel()


def quoted(*words: str) -> list[str]:
    """What a chat shows of these messages over HTTP."""
    return [f"> **You, over HTTP:** {word}" for word in words]


async def test_two_channels_at_once_have_one_order_everywhere() -> None:
    """MB-F22: messages that two channels send at once appear in the same order in every attached chat."""
    board, other = Board(), Board()
    async with ScriptedGateway() as gateway, ScriptedGateway() as _:
        conversation = gateway.add_conversation("main", [])
        async with process(gateway, board) as chats, process(gateway, other) as others:
            await chats.attach("1", conversation, place="1")
            await others.attach("2", conversation, place="2")
            async with anyio.create_task_group() as tasks:
                for number in range(5):
                    for channel in ("http", "terminal"):
                        tasks.start_soon(gateway.say_elsewhere, conversation, f"{channel}-{number}")
            await wait_until(lambda: len(board.posts) == len(other.posts) == 10)
    assert board.posts == other.posts


@pytest.mark.parametrize("write", range(1, 9))
async def test_a_crash_before_any_write_misses_and_repeats_nothing(write: int) -> None:
    """Whichever record of the attached chat or of its delivery was about to be written, each turn is shown once."""
    board = Board()
    async with ScriptedGateway() as gateway:
        conversation = gateway.add_conversation("main", [])
        async with process(gateway, board) as chats:
            await chats.attach("1", conversation, place="1")
        records, count = gateway.channel_records, 0

        def crash(key: str) -> None:
            nonlocal count
            count += 1
            if count == write:
                raise Crash

        records.before_write = crash
        for word in ("one", "two"):
            await gateway.say_elsewhere(conversation, word)
        while count < write:
            with pytest.RaisesGroup(Crash, flatten_subgroups=True, allow_unwrapped=True):
                async with process(gateway, board):
                    await anyio.sleep_forever()
        async with process(gateway, board):
            await gateway.say_elsewhere(conversation, "three")
            await wait_until(lambda: len(board.posts) >= 3)
    assert board.posts == quoted("one", "two", "three")


async def test_the_chat_does_not_quote_itself() -> None:
    """A message whose metadata name this chat is left to the channel; one that names another chat of it is shown."""
    board = Board()
    async with ScriptedGateway() as gateway:
        gateway.channel = "board"
        conversation = gateway.add_conversation("main", [])
        async with process(gateway, board) as chats:
            await chats.attach("1", conversation, place="1")
            for chat in ("1", "2"):
                message = SendMessage(
                    content=f"from {chat}", conversation=conversation, metadata=chats.metadata(chat)
                )
                await gateway.send(message)
            await wait_until(lambda: bool(board.posts))
            assert await chats.attached_to("1") == conversation
            assert await chats.detach("1") and not await chats.detach("1")
    assert board.posts == ["> **You, in board:** from 2"]


async def test_a_chat_that_the_service_moves_goes_on_in_its_new_place() -> None:
    """The new chat shows the conversation from where the old one was."""
    board = Board()
    async with ScriptedGateway() as gateway:
        conversation = gateway.add_conversation("main", [])
        async with process(gateway, board) as chats:
            await chats.attach("1", conversation, place="1")
            await chats.move("1", "2", "2")
            await gateway.say_elsewhere(conversation, "one")
            await wait_until(lambda: bool(board.posts))
            assert await chats.attached_to("1") is None and await chats.attached_to("2") == conversation
    assert board.posts == quoted("one")
