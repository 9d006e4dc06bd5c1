"""A test that takes too long costs its own time, and no more."""

import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the timer's signal is tested on Linux only")

TESTS = """
import anyio, pytest

pytestmark = pytest.mark.anyio

@pytest.fixture(scope="module")
async def shared(anyio_backend):
    yield 1
    print("torn down")

@pytest.fixture
async def stuck(shared):
    yield
    await anyio.sleep(600)

@pytest.mark.timeout(1)
async def test_waits(shared):
    await anyio.sleep(600)

async def test_later(shared):
    print("went on")

async def test_fails_and_its_teardown_waits(stuck):
    raise ValueError

async def test_last(shared):
    pass
"""


def test_a_timeout_ends_the_test_and_nothing_else(pytester: pytest.Pytester) -> None:
    """A test that waits and a fixture that does not end fail; others pass, and what they share is torn down."""
    source = (Path(__file__).parent / "timeouts.py").read_text(encoding="utf-8")
    backend = "@pytest.fixture(scope='session')\ndef anyio_backend():\n    return 'asyncio'\n"
    pytester.makeconftest(
        f"{source.replace('TEARDOWN_SECONDS = 120.0', 'TEARDOWN_SECONDS = 1.0')}\n\n{backend}"
    )
    pytester.makepyfile(TESTS)
    options = ("--timeout", "60", "-s", "-p", "no:cacheprovider", "-p", "no:randomly")
    result = pytester.runpytest_subprocess(*options, timeout=60)
    result.assert_outcomes(passed=2, failed=2, errors=1)
    result.stdout.fnmatch_lines(["*went on*", "*torn down*", "*It took too long*"])
