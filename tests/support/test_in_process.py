"""``--in-process`` keeps the tests that start no process, and no others."""

import subprocess
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trunkline
from tests.support.commands import run_trunkline
from tests.support.in_process import Starters
from tests.support.processes import process_platform
from trunkline.api.tool import ToolSpec
from trunkline.testing.platform import platform
from trunkline.testing.pytest_plugin import nats_server

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("helper", [nats_server, platform, process_platform, run_trunkline])
def test_the_usual_test_program_is_recognized_by_its_code(helper: object) -> None:
    """A renamed helper fails here, instead of making ``make check`` slow."""
    function = getattr(helper, "_get_wrapped_function", lambda: helper)()
    assert Starters().reached_from(function)


def test_a_test_of_hypothesis_is_inspected() -> None:
    """Otherwise it would start, fail at its process, and be repeated with ever simpler examples."""

    @given(st.integers())
    def starts(number: int) -> None:
        subprocess.run(["true", str(number)], check=True)

    assert Starters().reached_from(starts)


def test_a_helper_without_a_process_is_not_taken_for_one() -> None:
    """Only what names a start counts."""
    assert not Starters().reached_from(textwrap.dedent)
    assert not Starters().reached_from(test_a_helper_without_a_process_is_not_taken_for_one)


def test_other_names_of_a_function_are_not_looked_up_in_its_module() -> None:
    """It would refuse a name that is in another module now."""

    def uses() -> object:
        return trunkline.tool, ToolSpec

    assert not Starters().reached_from(uses)


def test_a_process_start_skips_a_test_in_every_case(pytester: pytest.Pytester) -> None:
    """In a test that handles the failure, and in a fixture that several tests share."""
    pytester.makeconftest((Path(__file__).parent / "in_process.py").read_text(encoding="utf-8"))
    pytester.makepyfile(
        """
        import contextlib, importlib, platform, sys
        import pytest

        def start(): return getattr(importlib.import_module("sub" + "process"), "run")([sys.executable, "-c", ""])
        def test_handles(): contextlib.suppress(Exception).__enter__(); pytest.raises(Exception, start)
        def test_starts(): start()
        def test_starts_none(): assert True
        def test_asks_for_the_processor(): platform.processor()

        @pytest.fixture(scope="module")
        def shared():
            try:
                start()
            except Exception as error:
                raise RuntimeError("it does not start") from error

        def test_one(shared): raise AssertionError
        def test_two(shared): raise AssertionError
        """
    )
    pytester.runpytest_subprocess("--in-process", "-p", "no:cacheprovider").assert_outcomes(
        passed=2, skipped=4
    )
