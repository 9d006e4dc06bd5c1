"""The inbox does what every channel must."""

from contextlib import asynccontextmanager

import pytest

from trunkline.api.testing import ChannelSuite, ChannelUser
from trunkline_inbox import Inbox


@pytest.fixture
def anyio_backend():
    return "asyncio"


class TestInbox(ChannelSuite):
    """The person writes letters and reads the answers."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    @asynccontextmanager
    async def person(self):
        async def say(text):
            (self.folder / f"{len(list(self.folder.iterdir()))}.txt").write_text(text)

        def seen():
            return "\n".join(answer.read_text() for answer in self.folder.glob("*.answer"))

        async def decide(approval, allow):
            await say(f"{'approve' if allow else 'deny'} {approval.id}")

        yield ChannelUser(Inbox(self.folder), say, seen, decide)
