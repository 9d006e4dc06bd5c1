"""``trunkline memory`` at a terminal: what others wrote into memory is shown there and not obeyed."""

from pathlib import Path

import pytest

from tests.support.commands import at_terminal, run_trunkline

EVIL = "beans \x1b]0;owned\x07\x1b[2J\x9b31m \u202ereversed"
PATH = "documents/evil.md"
COMMANDS = (
    ("show", PATH),
    ("search", "beans"),
    ("blame", PATH),
    ("recall", "lentils"),
    ("show", PATH, "--json"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with such a document and such a chunk."""
    base = tmp_path_factory.mktemp("evil")
    (base / "evil.md").write_text(f"{EVIL}\n")
    for arguments in (("add", base / "evil.md"), ("remember", f"lentils {EVIL}")):
        done = run_trunkline(base / "home", "memory", *arguments)
        assert done.returncode == 0, done.stderr
    return base / "home"


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_no_text_in_memory_commands_a_terminal(home: Path, arguments: tuple[str, ...]) -> None:
    """No title, no cleared screen, no colours, no text that runs backwards."""
    shown = at_terminal(home, "memory", *arguments)
    assert "reversed" in shown, shown
    assert not set(shown) & {"\x1b", "\x07", "\x9b", "\u202e"}, shown


def test_a_pipe_gets_the_text_unescaped(home: Path) -> None:
    """Only a terminal interprets control characters; a pipe gets the exact text."""
    assert run_trunkline(home, "memory", "show", PATH).stdout == f"{EVIL}\n"
