"""The adapter does what every adapter must, as far as a program that prints text can."""

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from trunkline import Message
from trunkline.api.model import ModelRequest
from trunkline.api.testing import SENTENCE, AdapterSuite, Situation
from trunkline_command import Command

SAY = f"for word in {SENTENCE!r}.split(' '): print(word, end=' ' * (word[-1] != '.'), flush=True); time.sleep(0.05)"
PROGRAMS = {
    "text": SAY,
    "endless": "print('I begin', flush=True); time.sleep(600)",
    "silent": "time.sleep(600)",
    "cut": "print('Half of', flush=True); sys.exit(3)",
    "empty": "sys.exit(1)",
    "unreachable": "",
}
NONE = "a program that prints text has none"


class TestCommand(AdapterSuite):
    """The other side is a real program."""

    counts = False
    lacks = dict.fromkeys(
        ["reasoning", "calls", "text_and_calls", "bad_arguments", "limit", "unauthorized", "rate_limited",
         "server_error", "overloaded", "malformed", "garbage", "quit", "overflow"], NONE,
    )  # fmt: skip

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    @asynccontextmanager
    async def situation(self, name):
        started = f"pathlib.Path({str(self.folder)!r}, str(os.getpid())).touch()"
        python = sys.executable if name != "unreachable" else "/no/such/program"
        argv = (python, "-c", f"import os, pathlib, sys, time; {started}\n{PROGRAMS[name]}")
        asked = ModelRequest(messages=(Message(id="msg_1", role="user", content="How is the harbour?"),))
        yield Situation(Command(argv), asked, self.arrived, self.left)

    def arrived(self):
        return len(list(self.folder.iterdir()))

    def left(self):
        return self.arrived() > 0 and not any(alive(file.name) for file in self.folder.iterdir())


def alive(pid):
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


def test_without_a_command_the_adapter_is_skipped():
    """``provider_adapter = "auto"`` takes an adapter only when it could answer."""
    assert not Command(()).configured
    assert Command((Path(sys.executable).name,)).configured
