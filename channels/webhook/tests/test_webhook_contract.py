"""The contract of channels and of posts, held by the webhook channel."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from trunkline.api.channel import Attachment, DeliveryState, PostService, UnfinishedPost
from trunkline.api.testing import ChannelSuite, ChannelUser, PostSuite, PostWitness
from trunkline.api.tool import Approval
from trunkline_webhook.channel import WebhookChannel
from trunkline_webhook.posts import WebhookPosts
from trunkline_webhook.settings import WebhookSettings
from trunkline_webhook.signature import WebhookSignature

from .target import ENV, SECRET, Sender, target
from .test_webhook import settings

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV, SECRET)


class TestWebhook(ChannelSuite):
    """A program of the owner sends messages and decisions, and receives everything."""

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path) -> None:
        self.home = tmp_path

    @asynccontextmanager
    async def person(self) -> AsyncIterator[ChannelUser]:
        async with target() as one, anyio.create_task_group() as tasks:
            sender = Sender(self.home)
            said: list[str] = []

            async def send(text: str) -> None:
                answer = (await sender.say(text)).json()
                said.append(answer.get("text") or answer.get("message", ""))

            async def say(text: str) -> None:
                tasks.start_soon(send, text)

            async def decide(approval: Approval, allow: bool) -> None:
                await say(f"{'approve' if allow else 'deny'} {approval.id}")

            def seen() -> str:
                return "\n".join([*said, *(event["data"]["text"] for event in one.events)])

            yield ChannelUser(
                WebhookChannel(settings(one.url, notices=True, decides=True), self.home), say, seen, decide
            )
            tasks.cancel_scope.cancel()


async def read_file(file: Attachment) -> bytes:
    return b"%PDF plan"


class OneBodyEach(PostService):
    """Posts of plain text, as the suite gives them: the receiver wants events."""

    def __init__(self, sender: WebhookPosts) -> None:
        self._sender = sender

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        body = '{"type": "message.answered", "data": {"text": "' + content + '"}}'
        return await self._sender.post(place, body, delivery)

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        return await self._sender.find(place, post, delivery)


class TestWebhookPosts(PostSuite):
    """No crash loses a request, and a receiver that ignores a known id sees each once."""

    @asynccontextmanager
    async def service(self) -> AsyncIterator[PostWitness]:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv(ENV, SECRET)
            async with target() as one:
                given: WebhookSettings = settings(one.url)
                signatures = {
                    name: WebhookSignature(name, webhook) for name, webhook in given.webhooks.items()
                }
                async with WebhookPosts(given, signatures, read_file) as sender:
                    yield PostWitness(OneBodyEach(sender), "garden", one.texts)
