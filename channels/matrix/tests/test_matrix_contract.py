"""The contract of channels and of posts, held by the Matrix channel on a scripted homeserver."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from trunkline.api.channel import Attachment, DeliveryState, PostService, UnfinishedPost
from trunkline.api.testing import ChannelSuite, ChannelUser, PostSuite, PostWitness
from trunkline.api.tool import Approval
from trunkline.testing.scripted_records import ScriptedRecords
from trunkline_matrix.channel import MatrixChannel
from trunkline_matrix.client import MatrixClient
from trunkline_matrix.content import MatrixContent
from trunkline_matrix.posts import MatrixPosts
from trunkline_matrix.rooms import Rooms
from trunkline_matrix.settings import MatrixSettings

from .homeserver import BOT, DIRECT, OWNER, TOKEN, homeserver


def settings(url: str) -> MatrixSettings:
    return MatrixSettings(homeserver=url, user=BOT, owners=(OWNER,), edit_seconds=0.02, sync_seconds=5)


class TestMatrix(ChannelSuite):
    """The owner writes to the account, and reacts to its questions."""

    @pytest.fixture(autouse=True)
    def _token(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MATRIX_ACCESS_TOKEN", TOKEN)

    @asynccontextmanager
    async def person(self) -> AsyncIterator[ChannelUser]:
        async with homeserver() as server:

            async def say(text: str) -> None:
                server.say(text)

            async def decide(approval: Approval, allow: bool) -> None:
                post = next(one for one in server.shown() if approval.id in one.text)
                server.react(post.id, "👍️" if allow else "👎")

            yield ChannelUser(
                MatrixChannel(settings(server.url)), say, lambda: "\n".join(server.seen()), decide
            )


FILE = Attachment(path="plan", name="plan.png", media_type="image/png", size=9)


def posted(content: str) -> str:
    """Return what the channel records of a content of the suite."""
    return (MatrixContent(file=FILE) if content == "a file" else MatrixContent(text=content)).encode()


class PlainPosts(PostService):
    """Posts of plain text and files, as the suite gives them."""

    def __init__(self, posts: MatrixPosts) -> None:
        self._posts = posts

    def mark(self, place: str) -> str:
        return self._posts.mark(place)

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        return await self._posts.post(place, posted(content), delivery)

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        return await self._posts.find(
            place, msgspec.structs.replace(post, content=posted(post.content)), delivery
        )


async def read_file(file: Attachment) -> bytes:
    return b"\x89PNG plan"


class TestMatrixPosts(PostSuite):
    """No crash loses or repeats a message of the account, or a file in it."""

    place = DIRECT
    remembers_transactions = True

    @asynccontextmanager
    async def service(self) -> AsyncIterator[PostWitness]:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("MATRIX_ACCESS_TOKEN", TOKEN)
            async with homeserver() as server, MatrixClient(settings(server.url)) as client:
                server.remembers_transactions = self.remembers_transactions
                server.say("between")  # people's messages lie between those of the account
                posts = MatrixPosts(client, Rooms(client, ScriptedRecords(), "4242"), read_file)
                shown = lambda: ["file" if "url" in one.content else one.text for one in server.shown()]  # noqa: E731
                yield PostWitness(PlainPosts(posts), self.place, shown, file="a file")


class TestMatrixNotices(TestMatrixPosts):
    """The same for what only the owner may read."""

    place = OWNER


class TestMatrixWithoutTransactions(TestMatrixPosts):
    """The same on a homeserver that has forgotten its transactions, for example by a restart."""

    remembers_transactions = False
