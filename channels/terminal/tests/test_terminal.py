"""The terminal channel in a real terminal: keys in by tmux, and what tmux shows."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tmux import MISSING, Tmux

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

TERMINAL_PROGRAM = f"{sys.executable} {Path(__file__).with_name('terminal_program.py')}"


def at_terminal(home: Path, *, columns: int = 80, rows: int = 24, environ: str = "") -> Tmux:
    """A terminal with the channel on a scripted gateway."""
    return Tmux(f"{environ} {TERMINAL_PROGRAM} {home}", columns=columns, rows=rows)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Tmux]:
    with at_terminal(tmp_path) as tmux:
        tmux.wait_shows("›")
        yield tmux


def test_markdown_is_rendered(terminal: Tmux) -> None:
    """Markdown loses its marks, code keeps its lines, and tokens and time follow."""
    terminal.type("markdown")
    terminal.wait_shows(
        "Heading", "Some bold text.", "    return 1", " • two", "The end.", "123 in / 45 out · "
    )
    assert "**" not in terminal.screen() and "```" not in terminal.screen()


def test_a_long_answer_scrolls(terminal: Tmux) -> None:
    """Every paragraph is in the scrollback once and in order."""
    terminal.type("long_answer")
    terminal.wait_shows("Paragraph 80.", "123 in")
    numbers = [
        int(line.split()[1][:-1]) for line in terminal.screen(history=True).split("\n") if line[:3] == "Par"
    ]
    assert numbers == list(range(1, 81))


def test_tools_are_shown(terminal: Tmux) -> None:
    """Each with its mark, arguments and the reason of a failure; their output cannot steer the terminal."""
    terminal.type("tools")
    terminal.wait_shows("✓ read_file path=notes/a.md", "✗ write_file", "permission␛]0;evil␇ denied", "Done.")


def test_a_withdrawn_answer_is_marked(terminal: Tmux) -> None:
    """Text that was printed and then withdrawn is marked, and the correct answer follows."""
    terminal.type("reset")
    terminal.wait_shows("ignore the text above", "The true answer.")
    assert "and more" not in terminal.screen()


def test_control_codes_are_pictures(terminal: Tmux) -> None:
    """A model cannot clear the screen, colour it or turn the direction of text."""
    terminal.type("before")
    terminal.wait_shows("You said: before")
    terminal.type("hostile")
    terminal.wait_shows("␛]0;owned␇␛[2J␛[31mred", "You said: before")


def test_ctrl_c_ends_the_turn_and_the_queue_continues(terminal: Tmux) -> None:
    """A message typed while a turn runs waits; Ctrl-C ends the turn and the next one begins."""
    terminal.type("forever")
    terminal.wait_shows("I begin and do not end")
    terminal.type("queued")
    terminal.wait_shows("1 waiting")
    terminal.keys("C-c")
    terminal.wait_shows("Cancelled.", "You said: queued")
    assert terminal.screen().index("I begin") < terminal.screen().index("You said: queued")


def test_a_second_ctrl_c_ends_the_session(terminal: Tmux) -> None:
    """The first one ends the turn, the second one the session, which prints how to continue the conversation."""
    terminal.type("forever")
    terminal.wait_shows("I begin and do not end")
    terminal.keys("C-c")
    terminal.wait_shows("Cancelled.")
    terminal.keys("C-c")
    terminal.wait_shows("trunkline chat --conversation conv_", "left with 0")


def test_ctrl_c_at_an_empty_prompt_explains_how_to_exit(terminal: Tmux) -> None:
    """It explains; typing something in between makes the next one the first again."""
    terminal.keys("C-c")
    terminal.wait_shows("To leave, press Ctrl-D")
    terminal.type("hello")
    terminal.wait_shows("You said: hello")
    terminal.keys("C-c")
    terminal.wait_until(lambda: terminal.screen().count("To leave, press Ctrl-D") == 2)
    assert "left with" not in terminal.screen()


def test_ctrl_c_empties_the_input(terminal: Tmux) -> None:
    """With text in the input, Ctrl-C only removes the text."""
    terminal.keys("-l", "half a thought")
    terminal.wait_shows("half a thought")
    terminal.keys("C-c")
    terminal.wait_until(lambda: "half a thought" not in terminal.screen())
    assert "To leave" not in terminal.screen()


def test_ctrl_d_ends_the_session(terminal: Tmux) -> None:
    """At once, with status 0 and the terminal as it was."""
    terminal.keys("C-d")
    terminal.wait_shows("left with 0")
    terminal.keys("-l", "echoed")
    terminal.wait_shows("echoed")


def test_only_yes_counts_as_approval(terminal: Tmux) -> None:
    """MN-T16: Enter and other words do not allow; y does."""
    terminal.type("approval")
    terminal.wait_shows("May I send this mail?", "send_mail to=a@example.org", "y/n ›")
    terminal.keys("Enter")
    terminal.type("yess")
    terminal.wait_until(lambda: terminal.screen().count("Answer y or n") == 2)
    assert "Allowed" not in terminal.screen()
    terminal.type("y")
    terminal.wait_shows("Allowed by terminal.", "Sent.")


def test_a_denial_denies_the_call(terminal: Tmux) -> None:
    """n denies, and the text typed before the question is still there."""
    terminal.type("approval")
    terminal.wait_shows("y/n ›")
    terminal.type("n")
    terminal.wait_shows("Denied by terminal.", "Then not.")


def test_lines_can_be_joined(terminal: Tmux) -> None:
    """Ctrl-J and Alt-Enter begin a new line; Enter sends."""
    terminal.keys("one", "C-j", "two", "M-Enter", "three")
    terminal.wait_shows("one", "two", "three")
    assert "You said" not in terminal.screen()
    terminal.keys("Enter")
    terminal.wait_shows("You said: one two three")


def test_a_paste_is_one_message(terminal: Tmux) -> None:
    """Pasted lines do not send themselves."""
    terminal.paste("first\nsecond\nthird")
    terminal.wait_shows("first", "third")
    assert "You said" not in terminal.screen()
    terminal.keys("Enter")
    terminal.wait_shows("You said: first second third")


def test_commands_and_blocks_are_completed(terminal: Tmux) -> None:
    """Tab completes the command, then the block; Enter takes the completion before it sends."""
    terminal.keys("-l", "/sw")
    terminal.wait_shows("go to another block")
    terminal.keys("Tab")
    terminal.keys("-l", " w")
    terminal.keys("Tab")
    terminal.wait_shows("› /switch work")
    terminal.keys("Enter")
    terminal.keys("Enter")
    terminal.wait_shows("You are in block work.", "work ›")


def test_an_unknown_command_is_reported_in_one_sentence(terminal: Tmux) -> None:
    """With the command that was meant."""
    terminal.type("/nwe")
    terminal.wait_shows("There is no command /nwe. Did you mean /new?")


def test_an_outage_is_reported_and_nothing_is_repeated(terminal: Tmux) -> None:
    """One line when the platform goes, one when it is back, and each text once."""
    terminal.type("outage")
    terminal.wait_shows("The platform does not answer.", "no connection")
    terminal.wait_shows("The platform is back.", "Before the break. After the break.")
    assert terminal.screen().count("Before the break.") == 1
    assert "no connection" not in terminal.screen()


def test_the_input_history_is_restored(tmp_path: Path) -> None:
    """Arrow up restores the input of an earlier session, except lines that begin with a space."""
    with at_terminal(tmp_path) as first:
        first.wait_shows("›")
        first.type("remember me")
        first.wait_shows("You said: remember me")
        first.type(" not me")
        first.wait_shows("You said:  not me")
    assert (tmp_path / "terminal_history").stat().st_mode & 0o777 == 0o600
    with at_terminal(tmp_path) as second:
        second.wait_shows("›")
        second.keys("Up")
        second.wait_shows("› remember me")


def test_a_narrow_terminal_is_usable(tmp_path: Path) -> None:
    """Twenty columns are enough, and so is a change of width in mid-sitting."""
    with at_terminal(tmp_path, columns=20, rows=15) as tmux:
        tmux.wait_shows("›")
        tmux.type("markdown")
        tmux.wait_shows("Some bold text.", "The end.")
        tmux.resize(60, 20)
        tmux.type("wide now")
        tmux.wait_shows("You said: wide now")


def test_a_dumb_terminal_gets_plain_text(tmp_path: Path) -> None:
    """There is no drawing: a prompt, plain answers, approval questions too, and no escape code."""
    with at_terminal(tmp_path, environ="TERM=dumb") as tmux:
        tmux.wait_shows("›")
        tmux.type("markdown")
        tmux.wait_shows("Some **bold** text.", "123 in / 45 out")
        tmux.type("approval")
        tmux.wait_shows("May I send this mail?", "y/n")
        tmux.type("")
        tmux.type("y")
        tmux.wait_shows("Sent.")
        tmux.type("forever")
        tmux.wait_shows("I begin and do not end")
        tmux.keys("C-c")
        tmux.wait_shows("Cancelled.")
        tmux.keys("C-d")
        tmux.wait_shows("left with 0")
