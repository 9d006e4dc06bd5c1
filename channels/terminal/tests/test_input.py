"""The input of the terminal channel in a real terminal: lists, mentions, pasted files, the queue, themes and panes."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.tmux import MISSING, Tmux
from trunkline.contracts.sandbox.detached_program import (
    DetachedProgram,
    ExitRecord,
    ProgramSpec,
    programs_folder,
)

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

PROGRAM = f"{sys.executable} {Path(__file__).with_name('terminal_program.py')}"

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)


def at_terminal(home: Path, *words: str, columns: int = 80, environ: str = "") -> Tmux:
    """A terminal with the channel on a scripted gateway, whose working folder is the home's ``work``."""
    work = home / "work"
    work.mkdir(exist_ok=True)
    return Tmux(f"cd {work} && env {environ} {PROGRAM} {home} {' '.join(words)}", columns=columns, rows=30)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Tmux]:
    with at_terminal(tmp_path) as tmux:
        tmux.wait_shows("›")
        yield tmux


def test_a_conversation_is_picked_at_the_start_and_later(tmp_path: Path) -> None:
    """The list narrows to what is typed; Esc leaves the person where they are, and so does Ctrl-C."""
    with at_terminal(tmp_path, "resume") as tmux:
        tmux.wait_shows("Continue which conversation?", "Beans and peas", "The new roof", "1 of 3")
        tmux.type_without_enter("rof")
        tmux.wait_until(lambda: "Beans and peas" not in tmux.screen())
        tmux.keys("Enter")
        tmux.wait_shows("You are in: The new roof", "› Let us talk: The new roof")
        tmux.type("/resume")
        tmux.wait_shows("Continue which conversation?", "❯")
        tmux.keys("Escape")
        tmux.wait_shows("You stay where you are.")
        tmux.type("/resume")
        tmux.wait_shows("❯")
        tmux.keys("C-c")
        tmux.wait_until(lambda: "❯" not in tmux.screen())
        assert "left with" not in tmux.screen()


def test_earlier_input_is_found_by_some_of_its_letters(terminal: Tmux) -> None:
    """Ctrl-R offers earlier input; what was being typed comes back when the list is closed."""
    for line in ("water the tomatoes", "paint the fence"):
        terminal.type(line)
        terminal.wait_shows(f"You said: {line}")
    terminal.type_without_enter("half a thought")
    terminal.keys("C-r")
    terminal.wait_shows("Earlier input", "1 of 2")
    terminal.keys("Escape")
    terminal.wait_shows("› half a thought")
    terminal.keys("C-r")
    terminal.wait_shows("Earlier input")
    terminal.type_without_enter("wtr tom")
    terminal.wait_shows("1 of 1")
    terminal.keys("Enter")
    terminal.wait_until(lambda: "› water the tomatoes" in terminal.screen().splitlines()[-2])
    terminal.keys("Enter")
    terminal.wait_until(lambda: terminal.screen(history=True).count("You said: water the tomatoes") == 2)


def test_a_mentioned_file_goes_with_the_message(tmp_path: Path) -> None:
    """@ completes a path, and the message brings the file; what names no file is text."""
    with at_terminal(tmp_path) as tmux:
        (tmp_path / "work" / "garden notes.md").write_text("Beans.")
        (tmp_path / "work" / "other.txt").write_text("Peas")
        tmux.wait_shows("›")
        tmux.type_without_enter("Read @gnot")
        tmux.wait_shows("garden notes.md")
        tmux.keys("Tab")
        tmux.wait_shows('Read @"garden notes.md"')
        tmux.type_without_enter(" and @other.txt, @anna")
        tmux.keys("Escape", "Enter", "BSpace", "Enter")
        tmux.wait_shows("With garden notes.md, other.txt.", "(6 bytes), other.txt (4 bytes)")


def test_pasted_pictures_go_with_the_message(tmp_path: Path) -> None:
    """The path of a file that is dropped on the terminal becomes a mention; Ctrl-V takes a picture of the clipboard."""
    picture, bin = tmp_path / "my picture.png", tmp_path / "bin"
    picture.write_bytes(PNG)
    bin.mkdir()
    (bin / "wl-paste").write_text(f'#!/bin/sh\n[ "$3" = image/png ] && exec cat "{picture}"\n')
    (bin / "wl-paste").chmod(0o755)
    with at_terminal(tmp_path, columns=160, environ=f"PATH={bin}:$PATH") as tmux:
        tmux.wait_shows("›")
        tmux.paste(str(picture).replace(" ", "\\ "))
        tmux.wait_shows(f'@"{picture}"')
        tmux.type_without_enter("and ")
        tmux.keys("C-v")
        tmux.wait_shows("and [picture 1]")
        tmux.keys("Enter")
        tmux.wait_shows(
            "With my picture.png, picture 1.png.", "my picture.png (32 bytes)", "1.png (32 bytes)"
        )
        tmux.paste("/no/such/file.png")
        tmux.wait_shows("› /no/such/file.png")


def test_a_change_is_shown_side_by_side_where_the_width_allows(tmp_path: Path) -> None:
    """From 100 columns on what goes stands beside what comes; on 80 one diff stands above the question."""
    with at_terminal(tmp_path, columns=110) as wide:
        wide.wait_shows("›")
        wide.type("changes")
        wide.wait_shows("May I write this file?", "y/n ›")
        rows = [row for row in wide.screen().splitlines() if row.startswith("│ -line 4 ")]
        assert rows and rows[0].endswith("│ +the fourth line")
        wide.type("y")
        wide.wait_shows("Allowed by terminal.")
    with at_terminal(tmp_path, columns=80) as narrow:
        narrow.wait_shows("›")
        narrow.type("changes")
        narrow.wait_shows("│ -line 4\n│ +the fourth line", "y/n ›")


def test_messages_that_wait_are_shown_changed_and_cancelled(terminal: Tmux) -> None:
    """Alt-Up takes the last one back to the input; /drop cancels one before its turn; Ctrl-S steers."""
    terminal.type("forever")
    terminal.wait_shows("I begin and do not end")
    terminal.type("second")
    terminal.type("third")
    terminal.wait_shows("1 queued: second", "2 queued: third", "2 waiting")
    terminal.keys("M-Up")
    terminal.wait_until(lambda: "main › third" in terminal.screen() and "2 queued" not in terminal.screen())
    terminal.type("!")
    terminal.wait_shows("2 queued: third!")
    terminal.type("/drop 1")
    terminal.wait_shows("Cancelled before its turn: second", "1 queued: third!")
    terminal.type("/drop 7")
    terminal.wait_shows("No message with the number 7 waits.")
    terminal.keys("C-c")
    terminal.wait_shows("Cancelled.", "You said: third!")
    assert "You said: second" not in terminal.screen(history=True)


def test_themes_and_no_colour(tmp_path: Path) -> None:
    """A theme holds from the next line on and in later sessions; NO_COLOR is above it."""
    with at_terminal(tmp_path, columns=90) as tmux:
        tmux.wait_shows("›")
        for theme in ("none", "light"):
            tmux.type(f"/theme {theme}")
            tmux.wait_shows(f"The theme is {theme}.")
        tmux.type("/nope")
        tmux.wait_shows("There is no command /nope.")
        tmux.type("/theme pink")
        tmux.wait_shows("There are: dark, light, none.")
    assert (tmp_path / "terminal_theme").read_text() == "light\n"
    with at_terminal(tmp_path, environ="NO_COLOR=1") as tmux:
        tmux.wait_shows("›")
        tmux.type("markdown")
        tmux.wait_shows("The end.")
        tmux.type("/nope")
        tmux.wait_shows("There is no command /nope.")
        assert not [line for line in tmux.coloured() if "\x1b[3" in line.replace("\x1b[39m", "")]


def test_background_tasks_are_shown_while_the_pane_is_open(tmp_path: Path) -> None:
    """Ctrl-T opens the pane and closes it; it changes with the tasks, and the conversation goes on above it."""
    program = DetachedProgram(programs_folder(tmp_path, "main") / "0a1b2c3d")
    with at_terminal(tmp_path) as tmux:
        tmux.wait_shows("›")
        tmux.keys("C-t")
        tmux.wait_shows("There are no background tasks on this machine.")
        lock = program.create(
            ProgramSpec(
                home=str(tmp_path), backend="bubblewrap", argv=("sleep", "100"), workspace="", env={}, folder="",
                label="", seconds=1000, memory=1, cpus=1, processes=1, network=False, writable=False,
                at=datetime.now(UTC),
            )
        )  # fmt: skip
        tmux.wait_shows("Background tasks: 1 running, 0 ended.", "0a1b2c3d  main  running", "sleep 100")
        tmux.type("hello")
        tmux.wait_shows("You said: hello", "1 running")
        program.write_exit(ExitRecord(at=datetime.now(UTC), exit_code=3))
        os.close(lock)
        tmux.wait_shows("0 running, 1 ended.", "main  exit 3")
        tmux.keys("C-t")
        tmux.wait_until(lambda: "Background tasks" not in tmux.screen())


def test_wide_characters_keep_their_columns(tmp_path: Path) -> None:
    """A line of characters that take two columns each is not longer than the terminal, also after it becomes narrow."""
    with at_terminal(tmp_path, columns=40) as tmux:
        tmux.wait_shows("›")
        tmux.type("漢字漢字")
        tmux.wait_shows("You said: 漢字")
        tmux.type("/title " + "漢字" * 30)
        tmux.wait_shows("This conversation is called")
        tmux.wait_until(lambda: " main · 漢字" in tmux.screen())
        bars = [line for line in tmux.screen().splitlines() if line.startswith(" main · ")]
        assert len(bars) == 1 and "…" in bars[0] and bars[0].endswith("scripted/model")
        tmux.resize(30, 20)
        tmux.type("漢字 again")
        tmux.wait_shows("You said: 漢字 again")


def test_a_plain_terminal_gets_lines_only(tmp_path: Path) -> None:
    """With ``plain`` nothing is drawn and the cursor is never moved: no escape code is written, and lists are numbered,
    as a screen reader needs it."""
    program = [
        sys.executable,
        str(Path(__file__).with_name("terminal_program.py")),
        str(tmp_path),
        "resume",
        "plain",
    ]
    ours, theirs = pty.openpty()
    with subprocess.Popen(program, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True) as running:
        os.close(theirs)
        seen = read_until(ours, b"Number, 1 to 3")
        os.write(ours, b"2\n")
        seen += read_until(ours, b"You are in: The new roof")
        os.write(ours, b"/tasks\n")
        seen += read_until(ours, b"There are no background tasks")
        os.write(ours, b"hello\n")
        seen += read_until(ours, b"You said: hello")
        os.write(ours, b"/exit\n")
        assert running.wait(60) == 0
    os.close(ours)
    assert b"\x1b" not in seen and b" 3  " in seen


def read_until(terminal: int, wanted: bytes) -> bytes:
    """What the program printed, up to these bytes."""
    deadline, seen = time.monotonic() + 60, b""
    while wanted not in seen:
        assert time.monotonic() < deadline, seen.decode(errors="replace")
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 65_536)
    return seen
