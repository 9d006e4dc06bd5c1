"""The contract of channels, held by the terminal reading a pipe."""

import io
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from trunkline.testing.channel_suite import ChannelSuite, ChannelUser
from trunkline_terminal.channel import TerminalChannel
from trunkline_terminal.settings import TerminalSettings


class TestTerminal(ChannelSuite):
    """The person types into a pipe and reads the output."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.patch = tmp_path, monkeypatch

    @asynccontextmanager
    async def person(self) -> AsyncIterator[ChannelUser]:
        reading, writing = os.pipe()
        screen = io.StringIO()

        async def say(text: str) -> None:
            os.write(writing, f"{text}\n".encode())

        with (
            os.fdopen(reading) as stdin,
            redirect_stdout(screen),
            redirect_stderr(screen),
            self.patch.context() as now,
        ):
            now.setattr(sys, "stdin", stdin)
            yield ChannelUser(TerminalChannel(TerminalSettings(), self.home), say, screen.getvalue)
        os.close(writing)
