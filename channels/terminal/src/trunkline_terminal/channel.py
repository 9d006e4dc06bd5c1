"""The terminal as a channel: chooses the kind of chat session that standard input and output allow."""

import os
import sys
from dataclasses import replace
from pathlib import Path

from trunkline.api.channel import ForegroundChannel, Gateway, TerminalSession
from trunkline_terminal.settings import TerminalSettings


class TerminalChannel(ForegroundChannel):
    """Standard input and output. The input history is stored in ``home``."""

    name = "terminal"
    shows = (
        "A terminal. It shows Markdown (headings, lists, tables, code blocks), but no pictures and no HTML."
    )

    def __init__(self, settings: TerminalSettings, home: Path) -> None:
        self._settings, self._home = settings, home

    async def attend(self, gateway: Gateway, session: TerminalSession) -> int:
        """Talk until the person leaves or the input ends.

        Returns 0, 1 (a turn or command failed), 3 (a turn waits for a decision), or 130 (Ctrl-C).
        """
        asked = replace(session, block=session.block or self._settings.block)
        at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        plain = session.plain or self._settings.plain
        if at_terminal and not plain and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", ""):
            from trunkline_terminal.interactive_chat import InteractiveChat

            return await InteractiveChat(gateway, asked, self._settings, self._home, self.render).run()
        from trunkline_terminal.piped_chat import PipedChat

        return await PipedChat(gateway, asked, prompt=at_terminal, render=self.render, home=self._home).run()
