"""An interactive chat session: connects the session and the screen, and handles Ctrl-C."""

from pathlib import Path

import anyio
import anyio.abc

from trunkline import RemoteFault, TrunklineError
from trunkline.api.channel import Gateway, TerminalSession
from trunkline_terminal import commands
from trunkline_terminal.chat_session import ChatSession
from trunkline_terminal.settings import TerminalSettings
from trunkline_terminal.terminal_screen import TerminalScreen
from trunkline_terminal.turn_display import Render

GREETING = "Trunkline. /help lists the commands."


class InteractiveChat:
    """A chat session at a terminal."""

    def __init__(
        self,
        gateway: Gateway,
        session: TerminalSession,
        settings: TerminalSettings,
        home: Path,
        render: Render = None,
    ) -> None:
        self._enter, self._lines = anyio.create_memory_object_stream[str](1000)
        self._press, self._presses = anyio.create_memory_object_stream[None](100)
        self._screen = TerminalScreen(
            settings,
            home,
            typed=self._typed,
            interrupted=self._pressed,
            blocks=self._block_names,
            models=self._model_names,
        )
        self._session = ChatSession(gateway, self._screen, session, render, home)
        self._second = False
        self._asked_for_models = False
        self._tasks: anyio.abc.TaskGroup | None = None

    async def run(self) -> int:
        """Until the person leaves. Always 0: they saw what failed."""
        await self._session.begin()
        self._screen.note(GREETING)
        self._screen.flush()
        if self._session.terminal_session.resume:
            self._enter.send_nowait("/resume")
        with self._enter, self._lines, self._press, self._presses:
            await self._run_tasks()
        return 0

    async def _run_tasks(self) -> None:
        async with anyio.create_task_group() as self._tasks:
            for job in (
                self._session.turns.run,
                self._session.state.update,
                self._session.tasks.run,
                self._session.show_approvals,
                self._session.show_budget_events,
                self._session.follow_others,
                self._dispatch,
                self._interrupts,
                _preload,
            ):
                self._tasks.start_soon(job)
            await self._screen.run()
            self._farewell()
            self._tasks.cancel_scope.cancel()

    def _block_names(self) -> list[str]:
        return [block.name for block in self._session.blocks]

    def _model_names(self) -> tuple[str, ...]:
        """Return the names of the models. The first call asks for them, because vendors need time to list them."""
        if not self._asked_for_models and self._tasks is not None:
            self._asked_for_models = True
            self._tasks.start_soon(self._load_models)
        return self._session.models

    async def _load_models(self) -> None:
        try:
            await self._session.load_models()
        except (RemoteFault, TrunklineError):
            self._asked_for_models = False  # only a completion; the next one asks again

    def _typed(self, line: str) -> None:
        self._second = False
        if commands.is_immediate(line) and self._tasks is not None:
            self._tasks.start_soon(self._handle, line)
        else:
            self._enter.send_nowait(line)

    async def _dispatch(self) -> None:
        async for line in self._lines:
            await self._handle(line)

    async def _handle(self, line: str) -> None:
        if not await self._session.handle(line):
            self._screen.leave()

    def _pressed(self) -> None:
        self._press.send_nowait(None)

    async def _interrupts(self) -> None:
        """The first Ctrl-C ends what runs, the next one leaves, unless something was typed in between."""
        async for _ in self._presses:
            if self._second:
                self._screen.leave()
                return
            self._second = True
            assert self._tasks is not None
            self._tasks.start_soon(self._interrupt)

    async def _interrupt(self) -> None:
        if self._session.turns.running is not None:
            self._screen.note("Cancelling. Ctrl-C again leaves.")
        if await self._session.interrupt() == "nothing":
            self._screen.note("To leave, press Ctrl-D, or Ctrl-C once more.")

    def _farewell(self) -> None:
        place = self._session.place
        self._screen.settle()
        running = self._session.turns.running
        if running is not None and running.has_open_question:
            self._screen.note('The question stays open; "trunkline approvals list" shows it too.')
        elif self._session.turns.count:
            self._screen.note("The turn continues; its answer will be in the conversation.")
        if place.conversation:
            self._screen.note(f"To continue: trunkline chat --conversation {place.conversation}")
        self._screen.flush()


async def _preload() -> None:
    """Load what the first answer needs while the person still types."""
    from importlib import import_module

    await anyio.sleep(0.2)
    await anyio.to_thread.run_sync(import_module, "trunkline_terminal.markdown")
