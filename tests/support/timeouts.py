"""Ends an asynchronous test or fixture that takes too long where it waits, so that everything is torn down as after any
other failure.

pytest-timeout raises an exception wherever the process is at that moment. In an asynchronous test that waits, this is
the event loop. The exception leaves the loop, and the task in which anyio runs tests and fixtures still waits: every
later fixture and test of that loop would wait behind it, forever. Besides, pytest-timeout stops its timer when a test
fails, so nothing would bound the teardown of a failed test.
"""

import asyncio
import functools
import inspect
import signal
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from types import FrameType, MethodType
from typing import Any

import pytest
from pytest_timeout import is_debugging  # type: ignore[import-untyped]

TEARDOWN_SECONDS = 120.0
"""Seconds that the fixtures of a failed test may take to end."""

GRACE_SECONDS = 30.0
"""Seconds within which what was cancelled must end. After that the exception of pytest-timeout is raised."""

RUNNER = "_run_tests_and_fixtures"
"""The function of the task in which anyio runs tests and fixtures."""

_Handler = Callable[[int, FrameType | None], Any]


def pytest_configure(config: pytest.Config) -> None:
    """Begin to watch the tests where there is the signal."""
    if hasattr(signal, "SIGALRM"):
        config.pluginmanager.register(AsyncTimeouts(), "async-timeouts")


class AsyncTimeouts:
    """The handler of the timer's signal before that of pytest-timeout, and what makes a cancellation a failure."""

    def __init__(self) -> None:
        self._cancelled = False
        self._handler: _Handler | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_timeout_set_timer(self) -> Generator[None, object, object]:
        """Put the handler before the one of pytest-timeout, which has just begun."""
        result = yield
        found = signal.getsignal(signal.SIGALRM)
        self._cancelled, self._handler = False, found if callable(found) else None
        if self._handler is not None:
            signal.signal(signal.SIGALRM, self._on_alarm)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        """Start the timer again if the test has failed."""
        if self._handler is not None and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL:
            self._cancelled = False
            signal.signal(signal.SIGALRM, self._on_alarm)
            signal.setitimer(signal.ITIMER_REAL, TEARDOWN_SECONDS)
        return (yield)

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)
        task = _runner_task()
        if task is not None and not self._cancelled and not is_debugging():
            self._cancelled = True
            task.get_loop().call_soon_threadsafe(task.cancel)
        elif self._handler is not None:
            self._handler(number, frame)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """Wrap asynchronous fixtures."""
        function = fixturedef.func
        fixturedef.func = self._wrapped(function)  # type: ignore[misc]
        try:
            return (yield)
        finally:
            fixturedef.func = function  # type: ignore[misc]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Wrap asynchronous tests."""
        if not hasattr(pyfuncitem.obj, "hypothesis"):
            pyfuncitem.obj = self._wrapped(pyfuncitem.obj)
        return (yield)

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(function, MethodType):
            return MethodType(self._wrapped(function.__func__), function.__self__)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run(*arguments: Any, **named: Any) -> Any:
                with self._failing():
                    return await function(*arguments, **named)

            return run
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def generate(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
                with self._failing():
                    async for value in function(*arguments, **named):
                        yield value

            return generate
        return function

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Report a cancellation as a failure, so that it does not end the runner's task too."""
        try:
            yield
        except asyncio.CancelledError:
            if not self._cancelled:
                raise
            pytest.fail("It took too long, and was cancelled where it waited.")
        finally:
            task = asyncio.current_task()
            while self._cancelled and task is not None and task.cancelling():
                task.uncancel()


def _runner_task() -> "asyncio.Task[Any] | None":
    """Return the task that runs a test or a fixture of this thread's event loop, if the loop runs."""
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:
        return None
    return next((task for task in tasks if getattr(task.get_coro(), "__name__", "") == RUNNER), None)
