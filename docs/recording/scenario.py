"""The story that is recorded. The model is a script; everything else is the program as people run it, in a fresh home.

The killing is real: the platform's processes get SIGKILL while the answer is on its way.
"""

import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from recording.svg_animation import ScreenFrame
from tests.support.tmux import Tmux
from trunkline.testing.platform import clean_environ
from trunkline.testing.script import CallTools, Reply, Say, ScriptedCall, ScriptedRequest, answer
from trunkline.testing.scripted_provider import ScriptedProvider

COLUMNS, ROWS = 110, 27
POLL_SECONDS = 0.1
"""Seconds between two looks at the screen."""

MAX_FRAME_SECONDS = 1.0
"""Seconds that a screen stands in the picture at most, where the program took longer."""

ANSWER = (
    "Sow the beans when the soil has 10 degrees, in the middle of May. Put six seeds around each pole, three "
    "centimetres deep, and water them well. They come up after ten days. Keep the two strongest of each pole, and "
    "tie them up until they climb by themselves. From July on you can pick: the more you pick, the more will grow."
)


def scripted_reply(heard: ScriptedRequest) -> Reply:
    """The scripted model: what it answers to the three things that are said to it."""
    asked = heard.program
    if "frame" in asked and not heard.asked:
        return answer(CallTools((ScriptedCall("memory_search", {"query": "climbing frame"}),)))
    if "frame" in asked:
        return answer(Say("It stands **behind the shed** (`documents/notes/garden.md`, line 1).", 0.04))
    if "shopping" in asked and not heard.asked:
        return answer(
            CallTools(
                (
                    ScriptedCall(
                        "memory_write", {"path": "/shopping.md", "content": "- 6 poles\n- bean seeds\n"}
                    ),
                )
            )
        )
    if "shopping" in asked:
        return answer(Say("Done. Poles and seeds are on the list.", 0.04))
    return answer(Say(ANSWER, 0.11))


class ScreenRecorder:
    """Looks at a terminal, and keeps each screen for as long as it stood."""

    def __init__(self, terminal: Tmux) -> None:
        self._terminal = terminal
        self._frames: list[ScreenFrame] = []
        self.caption = ""

    @property
    def frames(self) -> list[ScreenFrame]:
        """What was seen, with pauses no longer than a reader needs."""
        return self._frames

    def look(self, seconds: float = POLL_SECONDS) -> None:
        """Keep what is on the screen now."""
        lines = self._terminal.coloured()
        last = self._frames[-1] if self._frames else None
        if last is not None and (last.lines, last.caption) == (lines, self.caption):
            self._frames[-1] = ScreenFrame(
                lines, self.caption, min(MAX_FRAME_SECONDS, last.seconds + seconds)
            )
        else:
            self._frames.append(ScreenFrame(lines, self.caption, seconds))

    def until(self, *texts: str, seconds: float = 60.0) -> None:
        """Film until the screen shows all of these. Raises AssertionError with the screen."""
        deadline = time.monotonic() + seconds
        while not all(text in self._terminal.screen() for text in texts):
            assert time.monotonic() < deadline, (
                f"{texts} did not come; the screen:\n{self._terminal.screen()}"
            )
            self.look()
            time.sleep(POLL_SECONDS)
        self.look()

    def type(self, text: str) -> None:
        """Type as a person does, and press Enter."""
        for begin in range(0, len(text), 3):
            self._terminal.type_without_enter(text[begin : begin + 3])
            time.sleep(0.02)
            self.look()
        self._terminal.keys("Enter")

    def rest(self, seconds: float) -> None:
        """Let the reader read, and the program come to rest."""
        time.sleep(1.0)
        self._frames.append(ScreenFrame(self._terminal.coloured(), self.caption, seconds))


def record_scenario() -> list[ScreenFrame]:
    """Play the story in a home of its own. Raises AssertionError where the program does not do what is told."""
    with (
        tempfile.TemporaryDirectory(prefix="trunkline-recording-", ignore_cleanup_errors=True) as folder,
        ScriptedProvider(scripted_reply) as provider,
    ):
        home = Path(folder)
        (home / "notes").mkdir()
        (home / "notes" / "garden.md").write_text(
            "The climbing frame for the beans stands behind the shed.\n"
        )
        settings = f'[adapters.openai]\nbase_url = "{provider.url}"\nmodel = "scripted"\n'
        (home / ".trunkline").mkdir()
        (home / ".trunkline" / "trunkline.toml").write_text(settings + "[gateway]\nport = 0\n")
        with _shell(home) as terminal:
            camera = ScreenRecorder(terminal)
            _run_scenario(camera, terminal)
            return camera.frames


def _run_scenario(camera: ScreenRecorder, terminal: Tmux) -> None:
    camera.caption = "Add a file to memory, and ask about it."
    camera.until("$")
    camera.type("trunkline memory add notes")
    camera.until("Added 1 file")
    camera.rest(0.8)
    camera.type("trunkline chat")
    camera.until("/help")
    camera.type("Where does the climbing frame stand?")
    camera.until("behind the shed")
    camera.rest(1.5)
    camera.caption = "Before a change it shows the change and asks for approval. Silence is never approval."
    camera.type("Put poles and seeds on my shopping list.")
    camera.until("Allow it?", "bean seeds")
    camera.rest(2.0)
    camera.type("y")
    camera.until("on the list")
    camera.rest(1.0)
    camera.caption = "All processes are killed in the middle of an answer: kill -9."
    camera.type("How do I grow beans on poles?")
    camera.until("six seeds")
    _kill(terminal.pid())
    camera.until("Killed")
    camera.rest(2.0)
    camera.caption = "After a restart the answer continues, and ends once."
    terminal.type("clear")  # what was killed left its line at the bottom
    camera.until("$")
    camera.type("trunkline chat --conversation last")
    camera.until("the more will grow.")
    camera.rest(2.0)
    camera.type("/exit")
    camera.caption = "Memory is plain files in git. Blame names the author and the conversation of each line."
    terminal.type("clear")
    camera.type("cat ~/.trunkline/memory/shopping.md")
    camera.until("bean seeds")
    camera.type("trunkline memory blame shopping.md")
    camera.until("conv_")
    camera.rest(3.0)


@contextmanager
def _shell(home: Path) -> Iterator[Tmux]:
    environ = {
        name: value for name, value in clean_environ().items() if name in ("LANG", "LC_ALL", "TERM", "TMPDIR")
    }
    environ |= {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PS1": "$ ",
        "LC_ALL": "C.UTF-8",
    }
    given = " ".join(f"{name}={shlex.quote(value)}" for name, value in environ.items())
    line = f"cd {shlex.quote(str(home))} && exec env -i {given} TERM=xterm-256color bash --norc --noprofile"
    with Tmux(line, columns=COLUMNS, rows=ROWS) as terminal:
        yield terminal


def _kill(shell: int) -> None:
    """Kill everything that the shell has begun, children first so that none is told that its parent is gone."""
    for process in reversed(_below(shell)):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _below(process: int) -> list[int]:
    children: Callable[[int], str] = lambda pid: Path(f"/proc/{pid}/task/{pid}/children").read_text()  # noqa: E731
    found = [int(child) for child in children(process).split()]
    return [one for child in found for one in (child, *_below(child))]
