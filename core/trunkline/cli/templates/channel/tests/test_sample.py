"""The sample channel passes the contract suite."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from trunkline.api.testing import ChannelSuite, ChannelUser
from trunkline.api.tool import Approval

from trunkline_sample import SampleChannel


@pytest.fixture
def anyio_backend() -> str:
    """Trunkline runs on asyncio."""
    return "asyncio"


class TestSample(ChannelSuite):
    """The contract suite, which plays the person."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @asynccontextmanager
    async def person(self) -> AsyncIterator[ChannelUser]:
        """Return the person of the suite, who writes and reads here."""

        async def say(text: str) -> None:
            number = len(list(self.folder.iterdir()))
            (self.folder / f"{number}.in").write_text(text)

        def seen() -> str:
            return "\n".join(out.read_text() for out in self.folder.glob("*.out"))

        async def decide(approval: Approval, allow: bool) -> None:
            await say(f"{'approve' if allow else 'deny'} {approval.id}")

        yield ChannelUser(SampleChannel(self.folder), say, seen, decide)
