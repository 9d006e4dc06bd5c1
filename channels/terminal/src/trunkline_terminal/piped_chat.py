"""A chat session over pipes: each line of standard input is a message or a command.

On a dumb terminal there is a prompt, and approvals are asked; through a pipe there is neither.
"""

import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import TextIO

import anyio

from trunkline.api.channel import Gateway, TerminalSession
from trunkline_terminal.chat_session import ChatSession
from trunkline_terminal.line_reader import LineReader
from trunkline_terminal.plain_screen import PlainScreen
from trunkline_terminal.turn_display import Render

FAILED, UNDECIDED, INTERRUPTED = 1, 3, 130
"""Exit statuses: a turn or command failed, a turn waits for a decision, Ctrl-C."""


class PipedChat:
    """A chat session over pipes."""

    def __init__(
        self,
        gateway: Gateway,
        session: TerminalSession,
        *,
        prompt: bool,
        render: Render = None,
        home: Path | None = None,
    ) -> None:
        self._lines = LineReader(sys.stdin.fileno())
        self._prompt = prompt
        out: TextIO = sys.stdout
        side: TextIO = sys.stdout if prompt else sys.stderr
        self._screen = PlainScreen(
            out, side, hold=not out.isatty(), read=self._read_answer if prompt else None
        )
        self._session = ChatSession(gateway, self._screen, session, render, home, mentions=prompt)
        self._interrupted = self._second = False

    async def run(self) -> int:
        """Until the input ends. Returns the exit status."""
        await self._session.begin()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._session.turns.run)
            tasks.start_soon(self._interrupts, tasks.cancel_scope)
            tasks.start_soon(self._session.show_approvals)
            tasks.start_soon(self._session.show_budget_events)
            tasks.start_soon(self._session.follow_others)
            await self._handle_lines()
            tasks.cancel_scope.cancel()
        return self._exit_status()

    async def _handle_lines(self) -> None:
        if self._session.terminal_session.resume:
            await self._session.handle("/resume")
        while (line := await self._read("› ")) is not None:
            self._second = False
            going = await self._session.handle(line)
            await self._session.turns.wait_idle()
            if not going or self._session.turns.undecided:
                return

    async def _read(self, prompt: str) -> str | None:
        if self._prompt:
            sys.stdout.write(f"{self._session.place.block or 'trunkline'} {prompt}")
            sys.stdout.flush()
        return await self._lines.read_line()

    async def _read_answer(self, prompt: str) -> str | None:
        sys.stdout.write(prompt)
        sys.stdout.flush()
        return await self._lines.read_line()

    async def _interrupts(self, scope: anyio.CancelScope) -> None:
        """Ctrl-C ends the running turn; a second one, or one while nothing runs in a pipe, leaves."""
        async with aclosing(_interrupt_signals()) as presses:
            async for _ in presses:
                running = self._session.turns.running is not None
                if self._second or not (running or self._prompt):
                    self._interrupted = True
                    scope.cancel()
                    return
                self._second = True
                self._screen.note(
                    "Cancelling. Ctrl-C again leaves." if running else "To leave, press Ctrl-D."
                )
                await self._session.interrupt()

    def _exit_status(self) -> int:
        if self._interrupted:
            return INTERRUPTED
        if self._session.turns.undecided:
            return UNDECIDED
        return FAILED if self._session.failed or self._session.turns.failed else 0


async def _interrupt_signals() -> AsyncGenerator[None]:
    """Each Ctrl-C. Afterwards it means again what it meant before: asyncio forgets that."""
    before = signal.getsignal(signal.SIGINT)
    try:
        with anyio.open_signal_receiver(signal.SIGINT) as received:
            async for _ in received:
                yield
    finally:
        signal.signal(signal.SIGINT, before)
