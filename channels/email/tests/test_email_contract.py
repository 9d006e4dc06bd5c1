"""The contract of channels and of posts, held by the e-mail channel on scripted mail servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from trunkline.api.channel import Attachment, DeliveryState, PostService, UnfinishedPost
from trunkline.api.testing import ChannelSuite, ChannelUser, PostSuite, PostWitness
from trunkline.api.tool import Approval
from trunkline_email.mail_transport import MailTransport
from trunkline_email.mailbox import MailFolder
from trunkline_email.outbound_mail import MailContent
from trunkline_email.posts import MailPosts
from trunkline_email.threads import thread_key

from .mail_servers import decision_words, mail_servers
from .mail_store import OWNER, PASSWORD


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMAIL_PASSWORD", PASSWORD)


class TestEmail(ChannelSuite):
    """The owner writes mails in one thread, and decides by the words of the mail that asks."""

    @asynccontextmanager
    async def person(self) -> AsyncIterator[ChannelUser]:
        async with mail_servers() as servers:
            store = servers.store

            async def say(text: str) -> None:
                mails = store.mails()
                store.say(text, to=mails[-1] if mails else None)

            async def decide(approval: Approval, allow: bool) -> None:
                store.say(decision_words(store.seen(), approval.id, "approve" if allow else "deny"))

            def seen() -> str:
                return "\n".join(store.seen())

            yield ChannelUser(servers.channel(), say, seen, decide)


class AddressedPosts(PostService):
    """Posts of deliveries that the suite opens without an address and a subject."""

    def __init__(self, posts: MailPosts, files: tuple[Attachment, ...]) -> None:
        self._posts = posts
        self._files = files

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        return await self._posts.post(
            place, MailContent(text=content, files=self._files).encode(), _addressed(delivery)
        )

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        return await self._posts.find(place, post, _addressed(delivery))


FILE = Attachment(path="plan", name="plan.png", media_type="image/png", size=9)


async def read_file(file: Attachment) -> bytes:
    return b"\x89PNG plan"


def _addressed(delivery: DeliveryState) -> DeliveryState:
    key = thread_key(delivery.id)
    return msgspec.structs.replace(delivery, details={"thread": key, "key": key * 2, "subject": "A test"})


class TestEmailPosts(PostSuite):
    """No crash loses or repeats a mail, because its copy is in the mailbox if it was sent."""

    files: tuple[Attachment, ...] = ()

    @asynccontextmanager
    async def service(self) -> AsyncIterator[PostWitness]:
        async with mail_servers() as servers:
            settings = servers.settings()
            posts = MailPosts(settings, MailTransport(settings), lambda: MailFolder(settings), read_file)
            yield PostWitness(AddressedPosts(posts, self.files), OWNER, servers.store.seen)


class TestEmailPostsWithFiles(TestEmailPosts):
    """The same for a mail with a file."""

    files = (FILE,)
