"""``pytest --in-process`` runs the tests that start no process, for ``make check``.

No list says which tests those are. It follows from what a test uses, in two steps. A test is deselected if its code,
that of its fixtures, or that of a helper which these call names something that starts processes. This spares the time
that such a test takes up to its first process. Any other test begins, and the first process that it starts anyway
skips it: Python announces each start to its audit hooks. So no test of this run can start a process.
"""

import inspect
import platform
import sys
from collections.abc import Generator, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

STARTS = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "pty.spawn",
        "subprocess.Popen",
    }
)
"""The audit events of a process that starts."""

STARTERS = frozenset(
    {
        "DiscordBot", "DiscordChannel", "EmbeddedServer", "Popen", "create_subprocess_exec",
        "create_subprocess_shell", "fork", "multiprocessing", "open_process", "run_process", "running_platform",
        "subprocess",
    }
)  # fmt: skip
"""The names of what starts processes, in Python's library, in anyio and in the platform. Discord's client asks the
program ``file`` about this machine with each connection, and connects again for ever if it cannot."""

HELPERS = ("conftest", "docs.", "plugins.", "adapters.", "channels.", "tests.", "trunkline.testing.")
"""How the names of the modules begin whose functions are followed to what they use."""

REASON = "starts a process"


class ProcessStarted(Exception):
    """A process would have started. The test is skipped, also if it handles this."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--in-process``."""
    parser.addoption("--in-process", action="store_true", help="skip each test that starts a process")


def pytest_configure(config: pytest.Config) -> None:
    """Watch for processes, if that is wanted."""
    if config.getoption("--in-process"):
        config.pluginmanager.register(InProcess())


class InProcess:
    """Prevents processes while a test runs, and skips the tests that would have started one."""

    def __init__(self) -> None:
        self._runs = False
        self._started = False
        self._skipped = False
        self._starters = Starters()
        platform.processor()  # Python asks a program once, and vendors' libraries ask Python with each request
        sys.addaudithook(self._audit)

    def _audit(self, event: str, _: tuple[Any, ...]) -> None:
        if self._runs and event in STARTS:
            self._started = True
            raise ProcessStarted(REASON)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect the tests whose code names what starts processes."""
        kept: list[pytest.Item] = []
        dropped: list[pytest.Item] = []
        for item in items:
            (dropped if any(map(self._starters.reached_from, _functions(item))) else kept).append(item)
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Watch for as long as a test runs; collecting tests may start processes."""
        self._runs, self._started, self._skipped = True, False, False
        try:
            return (yield)
        finally:
            self._runs = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, None, None]:
        """Skip a test whose fixture started a process."""
        yield from self._phase()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, None, None]:
        """Skip a test that started a process."""
        yield from self._phase()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, None, None]:
        """Skip a test whose fixture started a process at its end."""
        yield from self._phase()

    def _phase(self) -> Generator[None, None, None]:
        """End a phase as skipped if a start was prevented in this test, even if the test handled the failure."""
        try:
            yield
        except BaseException as error:
            if not self._started and not _is_start(error):
                raise
            self._started = True
        if self._started and not self._skipped:
            self._skipped = True
            pytest.skip(REASON)


class Starters:
    """Finds whether a function names what starts processes, itself or in a helper that it names."""

    def __init__(self) -> None:
        self._known: dict[object, bool] = {}

    def reached_from(self, thing: object) -> bool:
        """Report whether this function, class or method can start a process."""
        key = getattr(thing, "__func__", thing)
        if not isinstance(key, FunctionType | type):
            return False
        if key not in self._known:
            self._known[key] = False  # for those that name each other
            self._known[key] = self._is_reached_from(key)
        return self._known[key]

    def _is_reached_from(self, thing: FunctionType | type) -> bool:
        if isinstance(thing, type):
            return any(map(self.reached_from, _members(thing)))
        function = _undecorated(thing)
        names = {name for code in _codes(function.__code__) for name in code.co_names}
        return not names.isdisjoint(STARTERS) or any(map(self.reached_from, _named(function, names)))


def _functions(item: pytest.Item) -> Iterator[object]:
    """The test's function and those of its fixtures."""
    yield getattr(item, "obj", None)
    if isinstance(item, pytest.Function):
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            yield from (definition.func for definition in definitions)


def _members(kind: type) -> Iterator[object]:
    for value in vars(kind).values():
        yield value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    yield from (base for base in kind.__bases__ if base.__module__.startswith(HELPERS))


def _named(function: FunctionType, names: set[str]) -> Iterator[object]:
    """The helpers that a function's code names, in its own module or as ``module.name``."""
    for name in names:
        found = function.__globals__.get(name)
        inside = [vars(found).get(one) for one in names] if isinstance(found, ModuleType) else []
        for thing in (found, *inside):
            if isinstance(thing, FunctionType | type) and thing.__module__.startswith(HELPERS):
                yield thing


def _undecorated(function: FunctionType) -> FunctionType:
    """The function as it was written. Hypothesis keeps it in a place of its own."""
    handle = getattr(function, "hypothesis", None)
    written = inspect.unwrap(getattr(handle, "inner_test", function))
    assert isinstance(written, FunctionType)
    return written


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _is_start(error: BaseException | None) -> bool:
    """Report whether a prevented start led to the error. A fixture that several tests share raises it for each of
    them."""
    if isinstance(error, BaseExceptionGroup) and any(map(_is_start, error.exceptions)):
        return True
    return isinstance(error, ProcessStarted) or (
        error is not None and _is_start(error.__cause__ or error.__context__)
    )
