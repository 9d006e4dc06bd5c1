"""Forks run each collected test once and report it as one process does."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.forks import Portions

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tests run in forks on Linux only")


@pytest.fixture
def run_in_forks(pytester: pytest.Pytester) -> Any:
    """Runs the module's text in three forks and returns the outcome."""
    pytester.makeconftest((Path(__file__).parent / "forks.py").read_text(encoding="utf-8"))

    def run(text: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(text)
        options = ("--forks", "3", "-p", "no:cacheprovider", "-p", "no:randomly", *options)
        return pytester.runpytest_subprocess(*options, timeout=60)

    return run


def test_results_output_and_warnings_are_those_of_one_process(run_in_forks: Any) -> None:
    """Also those of fixtures, and the folder of a test is its own."""
    result = run_in_forks(
        """
        import os, time, warnings
        import pytest

        PARENT = os.getpid()

        @pytest.fixture(scope="module")
        def shared():
            for event in ("began", "ended"):
                with open("fixtures", "a") as file:
                    file.write(f"{os.getpid()} {event}\\n")
                if event == "began":
                    yield os.getpid()

        @pytest.mark.parametrize("number", range(40))
        def test_passes(number, shared, tmp_path):
            assert shared == os.getpid() != PARENT
            assert not list(tmp_path.iterdir())
            (tmp_path / "file").touch()

        def test_fails(): print("what it printed"); assert 1 == 2
        def test_skips(): pytest.skip("for a reason")
        @pytest.mark.xfail(strict=True)
        def test_is_expected_to_fail(): assert False
        def test_warns(): warnings.warn("with a warning")
        @pytest.mark.timeout(1)
        def test_hangs(): time.sleep(50)
        @pytest.fixture
        def broken(): yield; raise RuntimeError("at its end")
        def test_ends_badly(broken): pass
        """,
        "-rs",
    )
    result.assert_outcomes(passed=42, failed=2, skipped=1, xfailed=1, errors=1, warnings=1)
    result.stdout.fnmatch_lines_random(
        ["*assert 1 == 2", "what it printed", "*with a warning", "*for a reason", "*Timeout (>1.0s)*"]
    )
    events = Path("fixtures").read_text().split()
    processes = set(events[::2])
    assert sorted(zip(events[::2], events[1::2], strict=True)) == sorted(
        (process, event) for process in processes for event in ("began", "ended")
    )


def test_a_test_whose_process_dies_fails_and_the_others_run(run_in_forks: Any) -> None:
    """Those that the dead fork had not begun run in another one."""
    result = run_in_forks(
        """
        import os, signal
        import pytest

        @pytest.mark.parametrize("number", range(60))
        def test_one(number):
            if number in (1, 30, 59):
                os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    result.assert_outcomes(passed=57, failed=3)
    result.stdout.fnmatch_lines(["*The process of this test died*"])


def test_a_run_stops_at_the_first_failure_if_asked_to(run_in_forks: Any) -> None:
    """The other forks end after the test that they run, and their fixtures end."""
    result = run_in_forks(
        """
        import time
        import pytest

        @pytest.mark.parametrize("number", range(3_000))
        def test_one(number):
            assert number != 5
        """,
        "-x",
    )
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    assert outcomes["passed"] < 2_999
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_portions_keep_the_order_and_hold_each_test_once() -> None:
    """Slow tests come one by one, and tests that were not begun come again, first."""
    slow = [index < 2 for index in range(1_000)]
    items: list[Any] = [
        SimpleNamespace(get_closest_marker=lambda _, is_slow=is_slow: is_slow or None) for is_slow in slow
    ]
    portions = Portions(items, 4)
    assert [portions.take(), portions.take()] == [[0], [1]]
    first, second = portions.take(), portions.take()
    assert len(first) > len(second) > 1
    portions.put_back(first[5:])
    taken = []
    while portion := portions.take():
        taken += portion
    assert first[:5] + taken[: len(first) - 5] == first
    assert sorted(first[:5] + second + taken) == list(range(2, 1_000))
    assert not portions
