"""A call in another thread that can be interrupted. Python cannot stop a thread, but it can raise an exception
in it.
"""

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

SETTLE_STEPS = 10_000
"""Iterations of an empty loop within which an exception raised from another thread certainly arrives."""


STACK_SIZE = 64 * 1024


class Interrupted(BaseException):
    """Raised inside a call that is interrupted."""


class InterruptibleCall:
    """Runs one function in the calling thread; another thread may interrupt it.

    An interruption arrives between two steps of Python code. It ends loops, and a blocking call when that call
    returns. It does not end code that catches ``BaseException`` and continues, or that never returns from C.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._interrupted = False

    def run(self, function: Callable[[], T]) -> T:
        """Call the function and return its result. Raises the function's exceptions, and Interrupted."""
        with self._lock:
            self._thread = threading.get_ident()
        try:
            with signal_stack():
                return function()
        finally:
            with self._lock:
                self._thread = None
            if self._interrupted:
                self._settle()

    def interrupt(self) -> None:
        """Raise Interrupted in the function if it is still running. May be called from any thread."""
        with self._lock:
            if self._thread is not None and not self._interrupted:
                self._interrupted = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(Interrupted)
                )

    def _settle(self) -> None:
        """Wait for a pending interruption, because the thread then continues with other work."""
        try:
            for _ in range(SETTLE_STEPS):
                pass
        except Interrupted:
            return


class _Stack(ctypes.Structure):
    """``stack_t`` of Linux."""

    _fields_ = (("base", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


@contextmanager
def signal_stack() -> Iterator[None]:
    """Provide a signal stack (sigaltstack(2)) for this thread within the context, on Linux.

    A thread whose own stack is full cannot run the handler of the fault. Without a signal stack the process dies
    before the fault is written, and the crash looks like a kill.
    """
    if sys.platform != "linux":
        yield
        return
    sigaltstack = ctypes.CDLL(None).sigaltstack
    buffer, before = ctypes.create_string_buffer(STACK_SIZE), _Stack()
    sigaltstack(ctypes.byref(_Stack(ctypes.addressof(buffer), 0, STACK_SIZE)), ctypes.byref(before))
    try:
        yield
    finally:
        sigaltstack(ctypes.byref(before), None)
