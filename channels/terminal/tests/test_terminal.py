"""The terminal channel in a real terminal: keys in by tmux, and what tmux shows."""

import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: apt-get install tmux"
)

SITTING = f"{sys.executable} {Path(__file__).with_name('sitting.py')}"


class Tmux:
    """One terminal of its own server."""

    def __init__(self, home: Path, *, columns: int = 80, rows: int = 24, environ: str = "") -> None:
        self._server = f"trunkline-{uuid.uuid4().hex[:12]}"
        command = f"{environ} {SITTING} {home}; echo left with $?; exec cat"
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), command)
        self.until(lambda: "›" in self.screen())

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
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", "Enter")

    def screen(self, *, history: bool = False) -> str:
        """What is on the screen, and above it with ``history``."""
        lines = self._tmux("capture-pane", "-p", *(["-S", "-"] if history else []))
        return "\n".join(line.rstrip() for line in lines.rstrip("\n").split("\n"))

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def shows(self, *texts: str) -> None:
        """Wait until the screen holds all of these."""
        self.until(lambda: all(text in self.screen() for text in texts))

    def until(self, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not true():
            assert time.monotonic() < deadline, f"not in time; the screen:\n{self.screen(history=True)}"
            time.sleep(0.05)

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self._server, "kill-server"], capture_output=True, timeout=20)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Tmux]:
    tmux = Tmux(tmp_path)
    yield tmux
    tmux.close()


def test_markdown_is_rendered(terminal: Tmux) -> None:
    """Markdown loses its marks, code keeps its lines, and tokens and time follow."""
    terminal.type("markdown")
    terminal.shows("Heading", "Some bold text.", "    return 1", " • two", "The end.", "123 in / 45 out · ")
    assert "**" not in terminal.screen() and "```" not in terminal.screen()


def test_a_long_answer_scrolls(terminal: Tmux) -> None:
    """Every paragraph is in the scrollback once and in order."""
    terminal.type("long_answer")
    terminal.shows("Paragraph 80.", "123 in")
    numbers = [
        int(line.split()[1][:-1]) for line in terminal.screen(history=True).split("\n") if line[:3] == "Par"
    ]
    assert numbers == list(range(1, 81))


def test_tools_are_shown(terminal: Tmux) -> None:
    """Each with its mark, arguments and the reason of a failure; their output cannot steer the terminal."""
    terminal.type("tools")
    terminal.shows("✓ read_file path=notes/a.md", "✗ write_file", "permission␛]0;evil␇ denied", "Done.")


def test_a_false_start_is_declared_void(terminal: Tmux) -> None:
    """What was printed for good and then reset is marked, and the true answer follows."""
    terminal.type("reset")
    terminal.shows("what stands above is void", "The true answer.")
    assert "and more" not in terminal.screen()


def test_control_codes_are_pictures(terminal: Tmux) -> None:
    """A model cannot clear the screen, colour it or turn the direction of text."""
    terminal.type("before")
    terminal.shows("You said: before")
    terminal.type("hostile")
    terminal.shows("␛]0;owned␇␛[2J␛[31mred", "You said: before")


def test_ctrl_c_ends_the_turn_and_the_queue_goes_on(terminal: Tmux) -> None:
    """A message typed while a turn runs waits; Ctrl-C ends the turn and the next one begins."""
    terminal.type("forever")
    terminal.shows("I begin and do not end")
    terminal.type("queued")
    terminal.shows("1 waiting")
    terminal.keys("C-c")
    terminal.shows("Cancelled.", "You said: queued")
    assert terminal.screen().index("I begin") < terminal.screen().index("You said: queued")


def test_a_second_ctrl_c_leaves(terminal: Tmux) -> None:
    """The first one ends the turn, the second one the sitting, which says how to go on."""
    terminal.type("forever")
    terminal.shows("I begin and do not end")
    terminal.keys("C-c")
    terminal.shows("Cancelled.")
    terminal.keys("C-c")
    terminal.shows("trunkline chat --conversation conv_", "left with 0")


def test_ctrl_c_at_an_empty_prompt_says_how_to_leave(terminal: Tmux) -> None:
    """It explains; typing something in between makes the next one the first again."""
    terminal.keys("C-c")
    terminal.shows("To leave, press Ctrl-D")
    terminal.type("hello")
    terminal.shows("You said: hello")
    terminal.keys("C-c")
    terminal.until(lambda: terminal.screen().count("To leave, press Ctrl-D") == 2)
    assert "left with" not in terminal.screen()


def test_ctrl_c_empties_the_input(terminal: Tmux) -> None:
    """With text in the input it only takes the text away."""
    terminal.keys("-l", "half a thought")
    terminal.shows("half a thought")
    terminal.keys("C-c")
    terminal.until(lambda: "half a thought" not in terminal.screen())
    assert "To leave" not in terminal.screen()


def test_ctrl_d_leaves(terminal: Tmux) -> None:
    """At once, with status 0 and the terminal as it was."""
    terminal.keys("C-d")
    terminal.shows("left with 0")
    terminal.keys("-l", "echoed")
    terminal.shows("echoed")


def test_only_yes_is_yes(terminal: Tmux) -> None:
    """Enter and other words do not allow; y does."""
    terminal.type("approval")
    terminal.shows("May I send this mail?", "send_mail to=a@example.org", "y/n ›")
    terminal.keys("Enter")
    terminal.type("yess")
    terminal.until(lambda: terminal.screen().count("Answer y or n") == 2)
    assert "Allowed" not in terminal.screen()
    terminal.type("y")
    terminal.shows("Allowed by terminal.", "Sent.")


def test_no_is_no(terminal: Tmux) -> None:
    """n denies, and what was being typed when the question came is still there."""
    terminal.type("approval")
    terminal.shows("y/n ›")
    terminal.type("n")
    terminal.shows("Denied by terminal.", "Then not.")


def test_lines_can_be_joined(terminal: Tmux) -> None:
    """Ctrl-J and Alt-Enter begin a new line; Enter sends."""
    terminal.keys("one", "C-j", "two", "M-Enter", "three")
    terminal.shows("one", "two", "three")
    assert "You said" not in terminal.screen()
    terminal.keys("Enter")
    terminal.shows("You said: one two three")


def test_a_paste_is_one_message(terminal: Tmux) -> None:
    """Pasted lines do not send themselves."""
    terminal._tmux("set-buffer", "first\nsecond\nthird")
    terminal._tmux("paste-buffer", "-p")
    terminal.shows("first", "third")
    assert "You said" not in terminal.screen()
    terminal.keys("Enter")
    terminal.shows("You said: first second third")


def test_commands_and_blocks_are_completed(terminal: Tmux) -> None:
    """Tab completes the command, then the block; Enter takes the completion before it sends."""
    terminal.keys("-l", "/sw")
    terminal.shows("go to another block")
    terminal.keys("Tab")
    terminal.keys("-l", " w")
    terminal.keys("Tab")
    terminal.shows("› /switch work")
    terminal.keys("Enter")
    terminal.keys("Enter")
    terminal.shows("You are in block work.", "work ›")


def test_an_unknown_command_is_one_sentence(terminal: Tmux) -> None:
    """With the command that was meant."""
    terminal.type("/nwe")
    terminal.shows("There is no command /nwe. Did you mean /new?")


def test_an_outage_is_told_and_nothing_repeated(terminal: Tmux) -> None:
    """One line when the platform goes, one when it is back, and each text once."""
    terminal.type("outage")
    terminal.shows("The platform does not answer.", "no connection")
    terminal.shows("The platform is back.", "Before the break. After the break.")
    assert terminal.screen().count("Before the break.") == 1
    assert "no connection" not in terminal.screen()


def test_the_history_comes_back(tmp_path: Path) -> None:
    """Arrow up brings what was typed in an earlier sitting, but not what began with a space."""
    first = Tmux(tmp_path)
    first.type("remember me")
    first.shows("You said: remember me")
    first.type(" not me")
    first.shows("You said:  not me")
    first.close()
    assert (tmp_path / "terminal_history").stat().st_mode & 0o777 == 0o600
    second = Tmux(tmp_path)
    try:
        second.keys("Up")
        second.shows("› remember me")
    finally:
        second.close()


def test_a_narrow_terminal_is_usable(tmp_path: Path) -> None:
    """Twenty columns are enough, and so is a change of width in mid-sitting."""
    tmux = Tmux(tmp_path, columns=20, rows=15)
    try:
        tmux.type("markdown")
        tmux.shows("Some bold text.", "The end.")
        tmux.resize(60, 20)
        tmux.type("wide now")
        tmux.shows("You said: wide now")
    finally:
        tmux.close()


def test_a_dumb_terminal_gets_plain_text(tmp_path: Path) -> None:
    """No drawing: a prompt, plain answers, approvals asked all the same, and no code."""
    tmux = Tmux(tmp_path, environ="TERM=dumb")
    try:
        tmux.type("markdown")
        tmux.shows("Some **bold** text.", "123 in / 45 out")
        tmux.type("approval")
        tmux.shows("May I send this mail?", "y/n")
        tmux.type("")
        tmux.type("y")
        tmux.shows("Sent.")
        tmux.type("forever")
        tmux.shows("I begin and do not end")
        tmux.keys("C-c")
        tmux.shows("Cancelled.")
        tmux.keys("C-d")
        tmux.shows("left with 0")
    finally:
        tmux.close()
