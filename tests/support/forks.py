"""``pytest --forks N`` runs the tests in N forks of the process that has collected them.

Each process of pytest-xdist imports and collects all tests itself, which takes a processor more than ten seconds. Here
one process does it, and a fork of it begins with its first test. The forks get portions of the tests in their order,
which become smaller: most tests of a module, which share fixtures, run in the same fork, and all forks end at about the
same time. A fork that dies fails the test that it ran, and another one takes its place.

It is for Linux: on macOS a fork that uses the system's frameworks may crash.
"""

import contextlib
import itertools
import os
import signal
import traceback
import warnings
from collections import deque
from collections.abc import Iterator
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn, TypeAlias

import pytest

PORTIONS = 4
"""A portion is the tests that are left, divided by the number of forks and by this."""

DEATH = "The process of this test died: it was killed, or it ended itself."

Location = tuple[str, int | None, str]

Line: TypeAlias = "Connection[Any, Any]"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--forks``."""
    parser.addoption("--forks", type=int, metavar="N", help="run the tests in N forks of this process")


def pytest_configure(config: pytest.Config) -> None:
    """Run the tests in forks, if that is wanted."""
    count = config.getoption("--forks")
    if isinstance(count, int) and not config.getoption("--collect-only"):
        config.pluginmanager.register(Forks(count))


class Portions:
    """The tests that no fork has yet. A slow one is a portion by itself."""

    def __init__(self, items: list[pytest.Item], forks: int) -> None:
        self._left = deque(range(len(items)))
        self._slow = {index for index, item in enumerate(items) if item.get_closest_marker("slow")}
        self._divisor = forks * PORTIONS

    def __bool__(self) -> bool:
        return bool(self._left)

    def take(self) -> list[int]:
        """Remove and return the next portion, as indexes of tests; none when nothing is left."""
        slow = self._left and self._left[0] in self._slow
        size = 1 if slow else -(-len(self._left) // self._divisor)
        return [self._left.popleft() for _ in range(size)]

    def put_back(self, indexes: list[int]) -> None:
        """Put tests that a fork did not begin in front of the others."""
        self._left.extendleft(reversed(indexes))

    def clear(self) -> None:
        """Drop all that are left."""
        self._left.clear()


class Fork:
    """One fork, from the side of the process that collected the tests."""

    def __init__(self, pid: int, line: Line) -> None:
        self.pid = pid
        self.line = line
        self.due: list[int] = []
        self.running: int | None = None

    def give(self, portion: list[int]) -> None:
        """Send it tests. None means that it is to end after the test that it runs."""
        self.due += portion
        with contextlib.suppress(OSError):  # it died, which is noticed when the line is read
            self.line.send(portion)

    def interrupt(self) -> None:
        """End it as Ctrl-C does, so that the fixtures of its test end."""
        os.kill(self.pid, signal.SIGINT)

    def join(self) -> None:
        """Wait for the end of its process."""
        self.line.close()
        os.waitpid(self.pid, 0)


class Forks:
    """Starts the forks, gives them tests, and passes their reports to pytest."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._forks: dict[Line, Fork] = {}
        self._names = (f"fork{number}" for number in itertools.count())
        self._stopping = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all tests. Raises ``session.Failed`` and ``session.Interrupted`` where one process would."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return None  # pytest reports it
        _reporter(session.config).showfspath = False  # tests of several modules end in turn
        _folders(session.config).getbasetemp()  # of all forks
        portions = Portions(session.items, self._count)
        try:
            for _ in range(min(self._count, len(session.items))):
                self._start(session)
            while self._forks:
                for line in wait(list(self._forks)):
                    assert isinstance(line, Connection)
                    self._read(self._forks[line], session, portions)
        finally:
            self._end()
        _raise_if_stopped(session)
        return True

    def _start(self, session: pytest.Session) -> None:
        ours, theirs = Pipe()
        name = next(self._names)
        _reporter(session.config).flush()
        pid = os.fork()
        if pid == 0:
            for line in (ours, *self._forks):
                line.close()
            run(session, theirs, name)
        theirs.close()
        self._forks[ours] = Fork(pid, ours)

    def _read(self, fork: Fork, session: pytest.Session, portions: Portions) -> None:
        try:
            kind, value = fork.line.recv()
        except (EOFError, OSError):
            self._ended(fork, session, portions)
            return
        if kind == "take":
            fork.give(portions.take())
        elif kind == "begin":
            fork.due.remove(value)
            fork.running = value
        elif kind == "end":
            fork.running = None
            for hook, given in value:
                _pass_on(hook, given, session.config)
        else:
            raise RuntimeError(f"a fork cannot run tests:\n{value}")
        if (session.shouldfail or session.shouldstop) and not self._stopping:
            self._stop(portions)

    def _ended(self, fork: Fork, session: pytest.Session, portions: Portions) -> None:
        del self._forks[fork.line]
        fork.join()
        if fork.running is not None:
            _report_death(session.items[fork.running], session.config)
        if not self._stopping:
            portions.put_back(fork.due)
            if portions:
                self._start(session)

    def _stop(self, portions: Portions) -> None:
        self._stopping = True
        portions.clear()
        for fork in self._forks.values():
            fork.give([])

    def _end(self) -> None:
        """End the forks that still run, after Ctrl-C or an error."""
        for fork in self._forks.values():
            fork.interrupt()
        for fork in self._forks.values():
            fork.join()
        self._forks.clear()


def _pass_on(hook: str, given: dict[str, Any], config: pytest.Config) -> None:
    """Call a hook of pytest with what it was given in a fork."""
    if hook == "pytest_runtest_logreport":
        report = config.hook.pytest_report_from_serializable(config=config, data=given)
        config.hook.pytest_runtest_logreport(report=report)
    elif hook == "pytest_warning_recorded":
        config.hook.pytest_warning_recorded.call_historic(kwargs=given)
    else:
        getattr(config.hook, hook)(**given)


def _report_death(item: pytest.Item, config: pytest.Config) -> None:
    location = (item.location[0], item.location[1] or 0, item.location[2])
    report = pytest.TestReport(item.nodeid, location, {}, "failed", DEATH, "call")
    config.hook.pytest_runtest_logreport(report=report)


def _raise_if_stopped(session: pytest.Session) -> None:
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


def _reporter(config: pytest.Config) -> Any:
    return config.pluginmanager.get_plugin("terminalreporter")


def _folders(config: pytest.Config) -> Any:
    return config._tmp_path_factory  # type: ignore[attr-defined]  # pytest has no public name for it


# The side of the fork ----------------------------------------------------------------------------------------------


def run(session: pytest.Session, line: Line, name: str) -> NoReturn:
    """Run tests until there are no more, then end this process."""
    try:
        reports = become(session.config, name)
        for index, following in itertools.pairwise(itertools.chain(_received(line), [None])):
            assert index is not None
            line.send(("begin", index))
            item, nextitem = session.items[index], None if following is None else session.items[following]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            line.send(("end", reports.taken()))
    except BaseException as error:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with contextlib.suppress(Exception):
            session._setupstate.teardown_exact(None)
        if isinstance(error, Exception):
            with contextlib.suppress(OSError):
                line.send(("error", traceback.format_exc()))
    finally:
        os._exit(0)


def become(config: pytest.Config, name: str) -> "Reports":
    """Give this process its own files and folder, and have it keep its reports instead of showing them."""
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    capture.stop_global_capturing()  # its files are those of all forks
    capture.start_global_capturing()
    capture.suspend_global_capture()
    folders = _folders(config)
    folders._basetemp = folders.mktemp(name, numbered=False)
    reporter = config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(Stacks(reporter), "terminalreporter")
    reports = Reports(config)
    config.pluginmanager.register(reports)
    return reports


def _received(line: Line) -> Iterator[int]:
    """Yield the indexes of the tests to run. The next portion is asked for before the last test of one runs, so that
    what this test shares with the next one is kept."""
    line.send(("take", None))
    while portion := line.recv():
        for index in portion:
            if line.poll():  # not asked for: the run stops
                return
            yield index
        line.send(("take", None))


class Stacks:
    """In place of the reporter, which would print results: pytest-timeout prints stacks with its writer."""

    def __init__(self, reporter: Any) -> None:
        self._tw = type(reporter._tw)(os.fdopen(os.dup(2), "w"))


class Reports:
    """What a test has reported, for the process that collected the tests: the hooks with what they were given."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._kept: list[tuple[str, dict[str, Any]]] = []

    def taken(self) -> list[tuple[str, dict[str, Any]]]:
        """Return and forget them. They are sent at once, because each message wakes the other process."""
        kept, self._kept = self._kept, []
        return kept

    def pytest_runtest_logstart(self, nodeid: str, location: Location) -> None:
        """Keep that a test starts."""
        self._kept.append(("pytest_runtest_logstart", {"nodeid": nodeid, "location": location}))

    def pytest_runtest_logfinish(self, nodeid: str, location: Location) -> None:
        """Keep that a test has ended."""
        self._kept.append(("pytest_runtest_logfinish", {"nodeid": nodeid, "location": location}))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result of a phase of a test."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._kept.append(("pytest_runtest_logreport", data))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        """Keep a warning as text, because its own arguments may be anything."""
        text = warnings.WarningMessage(
            str(warning_message.message), warning_message.category, warning_message.filename,
            warning_message.lineno,
        )  # fmt: skip
        given = {"warning_message": text, "when": when, "nodeid": nodeid, "location": location}
        self._kept.append(("pytest_warning_recorded", given))
