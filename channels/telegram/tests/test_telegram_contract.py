"""The contract of channels and of posts, held by the Telegram channel on a scripted Bot API server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from trunkline.api.channel import Attachment, DeliveryState, PostService, UnfinishedPost
from trunkline.api.testing import ChannelSuite, ChannelUser, PostSuite, PostWitness, ScriptedRecords
from trunkline.api.tool import Approval
from trunkline_telegram.bot_api import BotApi
from trunkline_telegram.channel import TelegramChannel
from trunkline_telegram.content import PostContent
from trunkline_telegram.posts import TelegramPosts
from trunkline_telegram.settings import TelegramSettings

from .bot_api_server import OWNER, QUICK, TOKEN, bot_api_server


def settings(url: str, **more: object) -> TelegramSettings:
    return TelegramSettings(api_url=url, owners=(OWNER,), edit_seconds=0.02, poll_seconds=5, **more)  # type: ignore[arg-type]


class TestTelegram(ChannelSuite):
    """The owner writes to the bot, and presses its buttons."""

    @pytest.fixture(autouse=True)
    def _token(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)

    @asynccontextmanager
    async def person(self) -> AsyncIterator[ChannelUser]:
        async with bot_api_server() as server:

            async def say(text: str) -> None:
                server.say(text)

            async def decide(approval: Approval, allow: bool) -> None:
                server.press(f"{'approve' if allow else 'deny'} {approval.id}")

            yield ChannelUser(
                TelegramChannel(settings(server.url), QUICK), say, lambda: "\n".join(server.seen()), decide
            )


FILES = {
    "a photo": Attachment(path="photo", name="plan.png", media_type="image/png", size=9),
    "a document": Attachment(path="document", name="plan.pdf", media_type="application/pdf", size=9),
}
"""Files by the content with which the suite posts them."""

CONTENTS = {
    **{name: PostContent(file=file).encode() for name, file in FILES.items()},
    "a place": PostContent(place=(48.4, 9.99)).encode(),
}


async def read_file(file: Attachment) -> bytes:
    return {"photo": b"\x89PNG plan", "document": b"%PDF plan"}[file.path]


def posted(content: str) -> str:
    """Return what the channel records of a content of the suite."""
    return CONTENTS.get(content) or PostContent(text=content).encode()


class PlainPosts(PostService):
    """Posts of plain text and files, as the suite gives them."""

    def __init__(self, posts: TelegramPosts) -> None:
        self._posts = posts

    def mark(self, place: str) -> str:
        return self._posts.mark(place)

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        return await self._posts.post(place, posted(content), delivery)

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        unfinished = UnfinishedPost(content=posted(post.content), mark=post.mark, is_file=post.is_file)
        return await self._posts.find(place, unfinished, delivery)


class TestTelegramPosts(PostSuite):
    """No crash loses or repeats a message of the bot, or a photo in it."""

    file = "a photo"

    @asynccontextmanager
    async def service(self) -> AsyncIterator[PostWitness]:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
            async with bot_api_server() as server, BotApi(settings(server.url)) as api:
                server.say("between")  # people's messages lie between those of the bot
                posts = TelegramPosts(api, ScriptedRecords(), "4242", QUICK, read_file)
                shown = lambda: ["file" if one.file else one.text for one in server.shown()]  # noqa: E731
                yield PostWitness(PlainPosts(posts), str(OWNER), shown, file=self.file)


class TestTelegramDocuments(TestTelegramPosts):
    """No crash loses or repeats a document."""

    file = "a document"


class TestTelegramPlaces(TestTelegramPosts):
    """No crash loses or repeats a place on the map."""

    file = "a place"
