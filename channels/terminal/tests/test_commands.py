"""Slash commands as they are typed."""

import pytest

from trunkline_terminal.commands import CommandCall, UnknownCommand, is_immediate, parse


def called(line: str) -> tuple[str, str]:
    """The name and the rest of a line that is a command."""
    found = parse(line)
    assert isinstance(found, CommandCall)
    return found.command.name, found.rest


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/help", ("help", "")),
        ("  /NEW ", ("new", "")),
        ("/switch work", ("switch", "work")),
        ("/switch-work what now", ("switch", "work what now")),
        ("/steer look\nat this", ("steer", "look\nat this")),
        ("/save  my file.json", ("save", "my file.json")),
    ],
)
def test_commands_are_found(line: str, expected: tuple[str, str]) -> None:
    """A command is its name in any case, and the rest."""
    assert called(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "hello",
        "/tool read_file path=a.md",
        "/compact the names",
        "/etc/hosts is what?",
        "5 / 3",
        "/ 3",
        "  x",
    ],
)
def test_messages_pass(line: str) -> None:
    """Text that is no command goes to the agent unchanged, ``/tool`` too."""
    assert parse(line) == line


def test_two_slashes_send_one() -> None:
    """``//help`` sends ``/help``."""
    assert parse("//help me") == "/help me"


def test_an_unknown_command_names_the_nearest() -> None:
    """A slip of the finger gets one sentence with the likely name."""
    with pytest.raises(UnknownCommand) as caught:
        parse("/swich work")
    assert "/swich" in caught.value.sentence
    assert "/switch" in caught.value.hint


def test_cancel_and_steer_do_not_wait() -> None:
    """They are about the running turn, so they pass messages that wait to be handed in."""
    assert [is_immediate(line) for line in ("/cancel", "/steer x", "/new", "x", "/nope")] == [
        True, True, False, False, False,
    ]  # fmt: skip
