"""A signal stack for a thread (sigaltstack(2)): a thread whose own stack is full has no room to run the handler of the
fault, so it would die before anything can be written of it, and nobody could tell its end from a kill."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SIZE = 64 * 1024


class _Stack(ctypes.Structure):
    """``stack_t`` of Linux."""

    _fields_ = (("base", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


@contextmanager
def signal_stack() -> Iterator[None]:
    """Give this thread a signal stack for the length of the block, where that is known how."""
    if sys.platform != "linux":
        yield
        return
    sigaltstack = ctypes.CDLL(None).sigaltstack
    buffer, before = ctypes.create_string_buffer(SIZE), _Stack()
    sigaltstack(ctypes.byref(_Stack(ctypes.addressof(buffer), 0, SIZE)), ctypes.byref(before))
    try:
        yield
    finally:
        sigaltstack(ctypes.byref(before), None)
