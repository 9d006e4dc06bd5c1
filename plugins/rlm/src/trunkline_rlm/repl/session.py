"""A session: code in, values out, variables kept, functions of the host in reach. The code is nobody's friend.

::

    async with Session(sandbox, {"double": double}) as session:
        ran = await session.run("x = double(21)\\nx")
        assert ran.value == 42
"""

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from trunkline import Sandbox
from trunkline_rlm.repl.frames import CallFrame, DoneFrame, HostileFrameError, OutputFrame
from trunkline_rlm.repl.process import ProcessEndedError, ReplLimits, ReplProcess, start_process

log = logging.getLogger(__name__)

HostFunction = Callable[..., Awaitable[Any]]
"""A function of the host that code may call; what it takes and gives has a form in JSON. A ``HostFunctionError`` that
it raises is raised in the code."""

FINAL = "FINAL"


class HostFunctionError(Exception):
    """To be raised in the code that called a function: ``kind`` is MemoryError, RecursionError, RuntimeError, TypeError
    or ValueError."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class SandboxViolation(Exception):
    """The code asks for what it may not have, and was not run."""


class CodeTimeoutError(TimeoutError):
    """The code ran too long and was stopped; its variables are gone."""


class ProcessBrokenError(Exception):
    """The process ended under the code: it took too much, or crashed. Its variables are gone."""


class SessionCompleteError(Exception):
    """``FINAL`` was called: the session is over."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of running a piece of code.

    ``value`` is that of a last expression, or how it is shown when JSON has no form for it. ``error`` is the text of an
    exception, beginning with its kind. ``output`` is what this piece printed.
    """

    value: Any = None
    shown: str = ""
    error: str | None = None
    output: str = ""


@dataclass(slots=True)
class _Final:
    """The answer, once there is one."""

    is_set: bool = False
    answer: Any = None


class ReplSession:
    """A session. Its process begins in ``sandbox`` with the first run, and again after one that was stopped.

    ``checked=False`` leaves out the check of the code, which is only there to tell soon what cannot work.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        functions: Mapping[str, HostFunction] | None = None,
        limits: ReplLimits | None = None,
        *,
        checked: bool = True,
    ) -> None:
        self.limits = limits or ReplLimits()
        self.names: tuple[str, ...] = ()
        """The code's variables with their types, as ``hits: list``."""
        self._functions: dict[str, HostFunction] = {**(functions or {}), FINAL: self._finish}
        self._sandbox = sandbox
        self._checked = checked
        self._final = _Final()
        self._output = _OutputBuffer(self.limits.output)
        self._process: ReplProcess | None = None

    async def __aenter__(self) -> "ReplSession":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    @property
    def is_complete(self) -> bool:
        """Report whether ``FINAL`` was called."""
        return self._final.is_set

    @property
    def result(self) -> Any:
        """The value that ``FINAL`` was called with. Raises RuntimeError before that."""
        if not self._final.is_set:
            raise RuntimeError("FINAL was not called yet.")
        return self._final.answer

    @property
    def output(self) -> str:
        """The output so far, from stdout and stderr."""
        return self._output.text

    @property
    def has_process(self) -> bool:
        """Report whether there is a process, and so variables of earlier runs."""
        return self._process is not None

    def clear_output(self) -> None:
        """Forget what was printed."""
        self._output = _OutputBuffer(self.limits.output)

    async def aclose(self) -> None:
        """End the process; variables are gone, the result and the output stay."""
        process, self._process, self.names = self._process, None, ()
        if process is not None:
            with anyio.CancelScope(shield=True):
                await process.end()

    async def reset(self) -> None:
        """Reset the session: no variables, no output, no result."""
        await self.aclose()
        self.clear_output()
        self._final = _Final()

    async def run(self, code: str, variables: Mapping[str, Any] | None = None) -> RunResult:
        """Run code, with ``variables`` set before. An exception of the code is a ``RunResult`` with an error.

        Raises:
            SandboxViolation: the code was refused.
            CodeTimeoutError: it computed longer than ``limits.timeout`` seconds; the host's functions do not count.
            ProcessBrokenError: the process ended.
            SessionCompleteError: ``FINAL`` had been called before.
            ToolError: there is no sandbox for it; the text says what to install.
        """
        if self._final.is_set:
            raise SessionCompleteError("The session is already complete: FINAL was called.")
        before = self._output.position()
        try:
            process = await self._start_process()
            await process.send("run", code, dict(variables or {}), self._checked)
            done = await self._serve_calls(process)
            value, names = done.value, done.variables
        except (ProcessEndedError, HostileFrameError) as error:
            await self.aclose()
            if isinstance(error, HostileFrameError):
                log.warning("a session was ended: %s", error)
            raise ProcessBrokenError(
                "The process of the code ended: it took too much memory or time, or crashed."
            ) from error
        except BaseException:
            await self.aclose()
            raise
        if done.violation:
            raise SandboxViolation(done.error)
        self.names = names
        return RunResult(value, done.shown, done.error, self._output.since(before))

    async def _start_process(self) -> ReplProcess:
        if self._process is None:
            self._process = await start_process(self._sandbox, tuple(self._functions), self.limits)
        return self._process

    async def _serve_calls(self, process: ReplProcess) -> DoneFrame:
        """Answer the code's calls until it has ended."""
        left, calls = self.limits.timeout, 0
        while True:
            with anyio.move_on_after(left) as computing:
                frame = await process.receive()
            if computing.cancelled_caught:
                raise CodeTimeoutError(f"The code ran longer than {self.limits.timeout:g} s and was stopped.")
            left = computing.deadline - anyio.current_time()
            match frame:
                case DoneFrame():
                    return frame
                case OutputFrame(text):
                    self._output.add(text)
                case CallFrame():
                    calls += 1
                    await self._answer_call(process, frame, calls)
                case _:
                    raise HostileFrameError(f"a frame out of turn: {type(frame).__name__}")

    async def _answer_call(self, process: ReplProcess, call: CallFrame, calls: int) -> None:
        try:
            if calls > 2 * self.limits.calls:
                raise HostileFrameError("calls that do not end")
            if calls > self.limits.calls:
                raise HostFunctionError("RuntimeError", f"more than {self.limits.calls} calls in one run")
            answer = await self._call_function(call)
        except HostFunctionError as fault:
            await process.send("fault", fault.kind, str(fault))
            return
        try:
            await process.send("answer", answer)
        except (TypeError, ValueError) as error:  # too large for a frame, or nothing for one
            await process.send("fault", "ValueError", str(error))

    async def _call_function(self, call: CallFrame) -> Any:
        function = self._functions.get(call.name)
        if function is None:
            raise HostileFrameError(f"a call of {call.name[:50]!r}")
        positional, named = call.decode_arguments()
        try:
            bound = inspect.signature(function).bind(*positional, **named)
        except TypeError as error:
            raise HostFunctionError("TypeError", f"{call.name}(): {error}") from error
        return await function(*bound.args, **bound.kwargs)

    async def _finish(self, answer: Any) -> None:
        if self._final.is_set:
            raise HostFunctionError("RuntimeError", "FINAL was called already; the first answer counts")
        self._final = _Final(True, answer)


MOST_PIECES = 10_000
"""Pieces in which output may come. Our side of the process sends some with each run, and large ones."""


@dataclass(slots=True)
class _OutputBuffer:
    """A bounded buffer of output. ``room`` is the number of characters that still fit."""

    room: int
    _pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def position(self) -> int:
        """Return the position of the next text."""
        return len(self._pieces)

    def since(self, mark: int) -> str:
        """Return the output after a mark."""
        return "".join(self._pieces[mark:])

    def add(self, text: str) -> None:
        """Keep it. Raises HostileFrameError for more than our side of the process would send."""
        if len(text) > self.room or len(self._pieces) >= MOST_PIECES:
            raise HostileFrameError("more output than is allowed")
        self.room -= len(text)
        self._pieces.append(text)
