"""What all tests share, of the core and of plugins: asynchronous ones run on asyncio, the only loop that NATS's client
knows; none is timed, and hypothesis tries the same examples in every run.

``pytest --hypothesis-profile wander`` tries others each time, and ten times as many: for whoever looks for what nobody
thought of. What that finds becomes an ``@example``; it is not to stop whoever lands something else.
"""

import gc
import os
from collections.abc import Generator, Iterator
from functools import cache

import httpcore2
import httpx
import pytest
from hypothesis import HealthCheck, settings

from trunkline.cli.gc_tuning import raise_gc_thresholds

pytest_plugins = [
    "tests.support.timeouts",
    "tests.support.in_process",
    "tests.support.fork_server",
    "tests.support.forks",
]

os.environ.setdefault("TERM", "xterm")  # programs at the terminals of tests inherit it, and CI may have none

# a busy machine is no failure; speed is measured in benchmarks/
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", untimed, derandomize=True)
settings.register_profile("check", untimed, derandomize=True, max_examples=20)  # for "make check"
settings.register_profile("wander", untimed, max_examples=1000)
settings.load_profile("same")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def shared_certificates() -> Iterator[None]:
    """Have all HTTP clients share the certificates. Each would read them anew, thirty milliseconds each time, and the
    tests make thousands of clients."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))
        patched.setattr("httpx._transports.default.create_ssl_context", cache(httpx.create_ssl_context))
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take minutes. Begun last, each would run alone while other processes have no more.
    Then come those that read all source files: one process gets them together, and parses the files once."""
    items.sort(
        key=lambda item: (item.get_closest_marker("slow") is None, "architecture" not in item.path.parts)
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected, and take what was collected out of the collector's sight: hundreds
    of thousands of objects that stay until the end. To look through them takes a fifth of the time. After that, look
    for garbage as often as the platform's programs do: with Python's thresholds it takes a twelfth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        raise_gc_thresholds()
        gc.enable()
