"""``trunkline chat`` and ``trunkline say`` on a whole platform, as the programs that a person starts."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Self

import psutil
import pytest

from tests.support.tmux import MISSING, Tmux
from trunkline.testing.platform import clean_environ
from trunkline.testing.script import Reply, Say, ScriptedRequest, Step, Stop, Wait, answer_by_message
from trunkline.testing.scripted_provider import ScriptedProvider

PROGRAM = [sys.executable, "-m", "trunkline.cli.main"]
needs_tmux = pytest.mark.skipif(bool(MISSING), reason=MISSING)


class HeldReply(tuple[Step, ...]):
    """A reply of which the steps after the first come once the test releases them."""

    def __new__(cls, steps: Iterable[Step], released: threading.Event) -> Self:
        """Take the event that the test sets."""
        reply = super().__new__(cls, steps)
        reply.released = released
        return reply

    released: threading.Event

    def __iter__(self) -> Iterator[Step]:
        yield self[0]
        while not self.released.is_set():
            yield Wait(0.05)
        yield from self[1:]


@pytest.fixture
def released() -> threading.Event:
    """Releases the rest of the answers to ``held``."""
    return threading.Event()


@pytest.fixture
def home(tmp_path: Path, released: threading.Event) -> Iterator[Path]:
    """A home whose model follows the message, and answers ``held`` in two parts."""
    folder = tmp_path / "home"
    folder.mkdir()

    def answer(request: ScriptedRequest) -> Reply:
        if request.program != "held":
            return answer_by_message(request)
        words = [f"word-{number}" for number in range(1, 61)]
        first, rest = " ".join(words[:5]), " " + " ".join(words[5:])
        return HeldReply((Say(first), Say(rest), Stop("stop")), released)

    with ScriptedProvider(answer) as provider:
        adapter = f'[adapters.openai]\nbase_url = "{provider.url}"\nmodel = "scripted"\n'
        (folder / "trunkline.toml").write_text(adapter + '[runtime]\nprovider_adapter = "openai"\n')
        yield folder


def run(home: Path, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PROGRAM, *arguments], input=stdin, capture_output=True, text=True, timeout=90,
        env={**clean_environ(), "TRUNKLINE_HOME": str(home)},
    )  # fmt: skip


def chat(home: Path, *arguments: str) -> Tmux:
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(home), "TERM": "screen-256color"}
    given = " ".join(f"{name}={shlex.quote(value)}" for name, value in environ.items())
    return Tmux(f"env -i {given} {shlex.join([*PROGRAM, 'chat', *arguments])}", columns=100, rows=40)


def test_chat_in_a_pipe_prints_answers(home: Path) -> None:
    """``echo hi | trunkline chat`` starts a platform, prints the answer and nothing else, and leaves with 0."""
    done = run(home, "chat", stdin="hi\nsay:the second\n")
    assert done.stdout == "You said: hi\nthe second\n", done.stderr
    assert done.returncode == 0 and "\x1b" not in done.stdout + done.stderr


def test_a_failed_turn_is_an_exit_status(home: Path) -> None:
    """The partial text and the sentence are printed, and the status is 1."""
    done = run(home, "chat", stdin="cut:2\n")
    assert done.returncode == 1
    assert "word-1" in done.stdout and "The model provider failed to answer." in done.stderr


def test_say_prints_one_answer(home: Path) -> None:
    """The answer is on standard output, the conversation on standard error; --conversation continues it."""
    first = run(home, "say", "say:hello there")
    assert (first.stdout, first.returncode) == ("hello there\n", 0), first.stderr
    conversation = first.stderr.split()[-1]
    second = json.loads(run(home, "say", "roles", "--conversation", conversation, "--json").stdout)
    assert second["conversation"] == conversation
    third = json.loads(run(home, "say", "hi", "--conversation", "last", "--json").stdout)
    assert third["conversation"] == conversation
    assert second["answer"].split()[-3:] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("say", "hi", "--block", "nope"), "nope"),
        (("say", "hi", "--conversation", "conv_nope"), "no conversation whose id begins with 'conv_nope'"),
        (("say", "hi", "--conversation", "last"), "no conversation yet"),
        (("chat", "--block", "mian"), "Did you mean main?"),
        (("chat", "--channel", "telephone"), "There are: terminal."),
        (("say", "  "), "TEXT is empty"),
    ],
)
def test_an_invalid_request_ends_chat_with_one_sentence(
    home: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    """A block, conversation or channel that is not there ends the program with a sentence and a status."""
    done = run(home, *arguments)
    assert done.returncode != 0 and sentence in done.stderr and "Traceback" not in done.stderr


@needs_tmux
def test_a_conversation_at_a_terminal(home: Path) -> None:
    """Markdown, tokens, status, trace and the way back."""
    with chat(home) as tmux:
        tmux.wait_shows("›", "new conversation")
        tmux.type("say:some **bold** words")
        tmux.wait_shows("some bold words", " in / ", " out · ")
        tmux.type("/status")
        tmux.wait_shows("block         main", "conversation  conv_")
        tmux.type("/trace")
        tmux.wait_shows("invoke_agent main")
        tmux.keys("C-d")
        tmux.wait_shows("trunkline chat --conversation conv_", "left with 0")


@needs_tmux
def test_ctrl_c_ends_the_turn_and_the_next_continues(home: Path) -> None:
    """The text that had come is kept, and the conversation is usable at once."""
    with chat(home) as tmux:
        tmux.wait_shows("›")
        tmux.type("stall:5")
        tmux.wait_shows("word-5")
        tmux.keys("C-c")
        tmux.wait_shows("Cancelled.")
        tmux.type("say:still here")
        tmux.wait_shows("still here", "0.")
        tmux.keys("C-d")
        tmux.wait_shows("left with 0")


@needs_tmux
def test_a_bus_crash_during_an_answer_repeats_nothing(home: Path) -> None:
    """nats-server is killed while words come: every word is on the screen once, in order."""
    with chat(home) as tmux:
        tmux.wait_shows("›")
        tmux.type("slow:120:50")
        tmux.wait_shows("word-10 ")
        for process in psutil.Process(tmux.pid()).children(recursive=True):
            if "nats-server" in process.name():
                os.kill(process.pid, signal.SIGKILL)
        tmux.wait_shows(" out · ")
        # The terminal is drawn in steps, and one look may fall between two of them; what stays is what counts.
        expected = [f"word-{number}" for number in range(1, 121)]
        shown: Callable[[], list[str]] = lambda: re.findall(r"\bword-\d+", tmux.screen(history=True))  # noqa: E731
        tmux.wait_until(lambda: shown() == expected)


@needs_tmux
def test_a_turn_survives_the_chat_that_started_it(home: Path, released: threading.Event) -> None:
    """A terminal that is closed in mid-turn loses nothing: the next one finds the running turn and shows it whole."""
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(home), "TRUNKLINE_GATEWAY__PORT": "0"}
    up = subprocess.Popen([*PROGRAM, "up"], env=environ, stdout=subprocess.PIPE, text=True)
    try:
        assert up.stdout is not None and "ready" in up.stdout.readline()
        with chat(home) as first:
            first.wait_shows("›")
            first.type("held")
            first.wait_shows("word-5")
            first.keys("C-d")
            first.wait_shows("word-5", "The turn continues;", "left with 0")
            shown = " ".join(first.screen().split())
            conversation = shown[shown.index("conv_") :].split()[0]
        with chat(home, "--conversation", conversation) as second:
            second.wait_shows("held", "word-1 ", "word-5")
            released.set()
            second.wait_shows("held", "word-1 ", "word-60", " out · ")
    finally:
        up.terminate()
        assert up.wait(60) == 0


@needs_tmux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_chat_cleanly(home: Path, number: signal.Signals) -> None:
    """The terminal is as it was, and nothing of the platform stays behind."""
    with chat(home) as tmux:
        tmux.wait_shows("›")
        [program] = [
            process
            for process in psutil.Process(tmux.pid()).children(recursive=True)
            if "chat" in process.cmdline()
        ]
        children = program.children(recursive=True)
        program.send_signal(number)
        tmux.wait_shows("left with 143")
        gone: Callable[[], bool] = lambda: not any(child.is_running() for child in children)  # noqa: E731
        tmux.wait_until(gone)
