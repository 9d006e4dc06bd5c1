"""The contract of channels and of posts, held by the Discord channel on a scripted Discord."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from trunkline.api.channel import Attachment, DeliveryState, PostService, UnfinishedPost
from trunkline.api.testing import ChannelSuite, ChannelUser, PostSuite, PostWitness, ScriptedRecords
from trunkline.api.tool import Approval
from trunkline_discord.bot import DiscordBot
from trunkline_discord.channel import DiscordChannel
from trunkline_discord.content import DiscordContent
from trunkline_discord.posts import DiscordPosts
from trunkline_discord.settings import DiscordSettings

from .discord_server import OWNER, TOKEN, discord_server, dm_of


def settings(url: str) -> DiscordSettings:
    return DiscordSettings(api_url=url, owners=(OWNER,), edit_seconds=0.02)


class TestDiscord(ChannelSuite):
    """The owner writes to the bot, and presses its buttons."""

    @pytest.fixture(autouse=True)
    def _token(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DISCORD_BOT_TOKEN", TOKEN)

    @asynccontextmanager
    async def person(self) -> AsyncIterator[ChannelUser]:
        async with discord_server() as server:

            async def say(text: str) -> None:
                server.say(text)

            async def decide(approval: Approval, allow: bool) -> None:
                server.press(f"{'approve' if allow else 'deny'} {approval.id}")

            yield ChannelUser(
                DiscordChannel(settings(server.url)), say, lambda: "\n".join(server.seen()), decide
            )


FILE = Attachment(path="plan", name="plan.png", media_type="image/png", size=9)


def posted(content: str) -> str:
    """Return what the channel records of a content of the suite."""
    return (DiscordContent(file=FILE) if content == "a file" else DiscordContent(text=content)).encode()


async def read_file(file: Attachment) -> bytes:
    return b"\x89PNG plan"


class PlainPosts(PostService):
    """Posts of plain text and files, as the suite gives them."""

    def __init__(self, posts: DiscordPosts) -> None:
        self._posts = posts

    def mark(self, place: str) -> str:
        return self._posts.mark(place)

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        return await self._posts.post(place, posted(content), delivery)

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        whole = msgspec.structs.replace(post, content=posted(post.content))
        return await self._posts.find(place, whole, delivery)


class TestDiscordPosts(PostSuite):
    """No crash loses or repeats a message of the bot."""

    @asynccontextmanager
    async def service(self) -> AsyncIterator[PostWitness]:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("DISCORD_BOT_TOKEN", TOKEN)
            async with discord_server() as server, DiscordBot(settings(server.url)) as bot:
                server.say("between")  # people's messages lie between those of the bot
                posts = DiscordPosts(bot, ScriptedRecords(), "4242", read_file)
                shown = lambda: ["file" if one.file else one.text for one in server.shown()]  # noqa: E731
                yield PostWitness(PlainPosts(posts), str(dm_of(OWNER)), shown, file="a file")
