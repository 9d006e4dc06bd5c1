"""The terminal's commands on a real platform, in a real terminal."""

import sys
from pathlib import Path

import pytest

from tests.support.tmux import MISSING, Tmux

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def test_MN_F28_MB_F8_commands_change_and_show_the_platform(tmp_path: Path) -> None:
    """A chat on its own platform creates a block and talks there, changes its mode, which the status line shows, and
    shows settings and memory as the commands in a shell do."""
    program = f"env TRUNKLINE_HOME={tmp_path / 'home'} {sys.executable} -m trunkline.cli.main chat"
    with Tmux(program, columns=110, rows=40) as terminal:
        terminal.wait_shows("/help lists the commands.", "›")
        terminal.type("/create-block garden Hello garden")
        terminal.wait_shows(
            "The block garden is there, and you are in it.", "Memory holds nothing", "garden ›"
        )
        terminal.wait_until(lambda: " · asks · " in terminal.screen().splitlines()[-1])
        terminal.type("/plan on")
        terminal.wait_shows("The agent of garden only reads and plans.")
        terminal.wait_until(lambda: " · plan mode · " in terminal.screen().splitlines()[-1])
        terminal.type("/config gateway.port")
        terminal.wait_shows("SETTING", "8420")
        terminal.type("/create-block garden")
        terminal.wait_shows("garden", "already")
        terminal.type("/resume")
        terminal.wait_shows("Continue which conversation?", "❯")
        terminal.keys("C-c")
        terminal.wait_shows("You stay where you are.")
        terminal.keys("C-d")
        terminal.wait_shows("left with 0")
