"""The C library's heap under git's library, which allocates in whichever thread reads or writes. No Python objects.

glibc gives threads arenas of their own, up to eight a core, and each keeps the most that it ever needed. Over 10 000
turns that was half of what the memory worker had grown by. Another C library is left as it is.
"""

import ctypes

ARENAS = 2
_M_ARENA_MAX = -8
"""``malloc.h`` of glibc."""


def limit_arenas() -> None:
    """Let threads share arenas; those that have one keep it."""
    if (mallopt := _function("mallopt")) is not None:
        mallopt(_M_ARENA_MAX, ARENAS)


def release_memory() -> None:
    """Give the system what is free after work that took much, such as packing."""
    if (trim := _function("malloc_trim")) is not None:
        trim(0)


def _function(name: str) -> "ctypes._NamedFuncPointer | None":
    return getattr(ctypes.CDLL(None), name, None)
