"""Runs a command's asynchronous part, on uvloop where there is one."""

import importlib.util
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


def run(main: Callable[..., Awaitable[T]], *arguments: object, at_terminal: bool = False) -> T:
    """Run ``main`` to its end and return what it returns. An error inside groups of one leaves them.

    ``at_terminal`` is for commands that read keys: uvloop would switch the terminal to non-blocking, for standard
    output and for the shell too, so they run on Python's own loop.
    """
    fast = not at_terminal and importlib.util.find_spec("uvloop") is not None
    try:
        return anyio.run(main, *arguments, backend_options={"use_uvloop": fast})
    except BaseExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from group.exceptions[0].__cause__
        raise
