"""A real terminal for tests, by tmux: press keys, read the screen. Needs the program ``tmux``."""

import shutil
import subprocess
import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Self

MISSING = "" if shutil.which("tmux") else "tmux is not installed: apt-get install tmux"
"""Why such tests are skipped here, or nothing."""

TIMEOUT = 60.0
"""Seconds within which the screen must show what is waited for."""

POLL_SECONDS = 0.1
"""Seconds between looks at the screen. Each look starts a program."""


class Tmux:
    """One terminal, with a tmux server of its own, in which ``command`` (a shell line) runs.

    Use it as a context manager. When the command ends, the screen says ``left with STATUS``.
    """

    def __init__(self, command: str, *, columns: int = 80, rows: int = 24) -> None:
        self._server = f"trunkline-{uuid.uuid4().hex[:12]}"
        self._start = ("-x", str(columns), "-y", str(rows), f"{command}; echo left with $?; exec cat")

    def __enter__(self) -> Self:
        self._tmux("-f", "/dev/null", "new-session", "-d", *self._start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        subprocess.run(["tmux", "-L", self._server, "kill-server"], capture_output=True, timeout=60)

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._server, *arguments], capture_output=True, text=True, check=True, timeout=20
        )
        return done.stdout

    def keys(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type a text and Enter."""
        self.type_without_enter(text)
        self._tmux("send-keys", "Enter")

    def type_without_enter(self, text: str) -> None:
        """Type a text without Enter."""
        self._tmux("send-keys", "-l", "--", text)

    def paste(self, text: str) -> None:
        """Paste a text, in brackets if the program asked for them."""
        self._tmux("set-buffer", text)
        self._tmux("paste-buffer", "-p")

    def screen(self, *, history: bool = False) -> str:
        """Return the text on the screen, with ``history`` also the lines scrolled off above it."""
        lines = self._tmux("capture-pane", "-p", *(["-S", "-"] if history else []))
        return "\n".join(line.rstrip() for line in lines.rstrip("\n").split("\n"))

    def coloured(self) -> tuple[str, ...]:
        """The lines on the screen, with the escape sequences of their colours."""
        return tuple(self._tmux("capture-pane", "-p", "-e").rstrip("\n").split("\n"))

    def resize(self, columns: int, rows: int) -> None:
        """Change the size."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def pid(self) -> int:
        """The process of the shell in which the command runs."""
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    def wait_shows(self, *texts: str) -> None:
        """Wait until the screen holds all of these."""
        self.wait_until(lambda: (screen := self.screen()) and all(text in screen for text in texts))

    def wait_until(self, true: Callable[[], object]) -> None:
        """Wait until something holds. Raises AssertionError with the screen."""
        deadline = time.monotonic() + TIMEOUT
        while not true():
            assert time.monotonic() < deadline, (
                f"not in time; the screen:\n{self.screen()}\nand all:\n{self.screen(history=True)}"
            )
            time.sleep(POLL_SECONDS)
