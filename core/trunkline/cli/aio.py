"""Runs the asynchronous part of a command, on uvloop if it is installed."""

import importlib.util
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from trunkline.cli.interrupts import InterruptHandler, handle_interrupts

T = TypeVar("T")


def run(main: Callable[..., Awaitable[T]], *arguments: object, at_terminal: bool = False) -> T:
    """Run ``main`` to its end and return its result. An exception that is alone in its exception group is raised
    without the group.

    ``at_terminal`` is for commands that read keys. They run on Python's own event loop, because uvloop would switch
    the terminal to non-blocking mode, also for standard output and the shell.

    Raises:
        KeyboardInterrupt: Ctrl-C ended ``main``.
    """
    fast = not at_terminal and importlib.util.find_spec("uvloop") is not None
    with handle_interrupts() as ctrl_c:
        try:
            return anyio.run(_main, ctrl_c, main, arguments, backend_options={"use_uvloop": fast})
        except BaseException as error:
            if ctrl_c.count:  # Ctrl-C is the cause of whatever error ended the work
                raise KeyboardInterrupt from error
            if isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
                raise error.exceptions[0] from error.exceptions[0].__cause__
            raise


async def _main(
    ctrl_c: InterruptHandler, main: Callable[..., Awaitable[T]], arguments: tuple[object, ...]
) -> T:
    ctrl_c.cancel_current_task()
    return await main(*arguments)
