"""The contract of channels and of posts, held by the Slack channel on a scripted Slack."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from trunkline.api.channel import Attachment, DeliveryState, PostService, UnfinishedPost
from trunkline.api.testing import ChannelSuite, ChannelUser, PostSuite, PostWitness
from trunkline.api.tool import Approval
from trunkline_slack.bot import SlackBot
from trunkline_slack.channel import SlackChannel
from trunkline_slack.content import SlackContent
from trunkline_slack.posts import SlackPosts
from trunkline_slack.settings import SlackSettings

from .slack_server import APP_TOKEN, BOT_TOKEN, OWNER, dm_of, slack_server


def settings(url: str) -> SlackSettings:
    return SlackSettings(api_url=url, owners=(OWNER,), edit_seconds=0.02)


class TestSlack(ChannelSuite):
    """The owner writes to the bot, and presses its buttons."""

    @pytest.fixture(autouse=True)
    def _token(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SLACK_BOT_TOKEN", BOT_TOKEN)
        monkeypatch.setenv("SLACK_APP_TOKEN", APP_TOKEN)

    @asynccontextmanager
    async def person(self) -> AsyncIterator[ChannelUser]:
        async with slack_server() as server:

            async def say(text: str) -> None:
                server.say(text)

            async def decide(approval: Approval, allow: bool) -> None:
                server.press(f"{'approve' if allow else 'deny'} {approval.id}")

            yield ChannelUser(
                SlackChannel(settings(server.url)), say, lambda: "\n".join(server.seen()), decide
            )


FILE = Attachment(path="plan", name="plan.png", media_type="image/png", size=9)


def posted(content: str) -> str:
    """Return what the channel records of a content of the suite."""
    return (SlackContent(file=FILE) if content == "a file" else SlackContent(text=content)).encode()


async def read_file(file: Attachment) -> bytes:
    return b"\x89PNG plan"


class PlainPosts(PostService):
    """Posts of plain text and files, as the suite gives them."""

    def __init__(self, posts: SlackPosts) -> None:
        self._posts = posts

    def mark(self, place: str) -> str:
        return self._posts.mark(place)

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        return await self._posts.post(place, posted(content), delivery)

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        whole = msgspec.structs.replace(post, content=posted(post.content))
        return await self._posts.find(place, whole, delivery)


class TestSlackPosts(PostSuite):
    """No crash loses or repeats a message of the bot."""

    @asynccontextmanager
    async def service(self) -> AsyncIterator[PostWitness]:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("SLACK_BOT_TOKEN", BOT_TOKEN)
            patched.setenv("SLACK_APP_TOKEN", APP_TOKEN)
            async with slack_server() as server, SlackBot(settings(server.url)) as bot:
                server.say("between")  # people's messages lie between those of the bot
                posts = SlackPosts(bot, read_file)
                shown = lambda: ["file" if "files" in one.extra else one.text for one in server.shown()]  # noqa: E731
                yield PostWitness(PlainPosts(posts), dm_of(OWNER), shown, file="a file")
