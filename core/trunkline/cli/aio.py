"""Runs a command's asynchronous part, on uvloop where there is one."""

import importlib.util
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from trunkline.cli.interrupts import InterruptHandler, handle_interrupts

T = TypeVar("T")


def run(main: Callable[..., Awaitable[T]], *arguments: object, at_terminal: bool = False) -> T:
    """Run ``main`` to its end and return what it returns. An error inside groups of one leaves them.

    ``at_terminal`` is for commands that read keys: uvloop would switch the terminal to non-blocking, for standard
    output and for the shell too, so they run on Python's own loop.

    Raises:
        KeyboardInterrupt: Ctrl-C ended it.
    """
    fast = not at_terminal and importlib.util.find_spec("uvloop") is not None
    with handle_interrupts() as ctrl_c:
        try:
            return anyio.run(_main, ctrl_c, main, arguments, backend_options={"use_uvloop": fast})
        except BaseException as error:
            if ctrl_c.count:  # whatever ended it, the person did
                raise KeyboardInterrupt from error
            if isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
                raise error.exceptions[0] from error.exceptions[0].__cause__
            raise


async def _main(
    ctrl_c: InterruptHandler, main: Callable[..., Awaitable[T]], arguments: tuple[object, ...]
) -> T:
    ctrl_c.cancel_current_task()
    return await main(*arguments)
