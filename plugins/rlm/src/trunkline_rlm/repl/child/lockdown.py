"""Shuts a process in once more, for good: after ``lock()`` it can compute, and read and write the pipes that it has.

The boundary is the sandbox that it runs in. Within it a seccomp filter allows the few system calls of a computing
Python and denies all others with EPERM, so that no file is opened, no process begun, next to nothing of the kernel
reached, and no object larger than 10 MB. Imports nothing but the standard library.
"""

import ctypes
import os
import resource
import struct

HEAP = 1024 * 1024
"""Bytes that the program break may grow. Beyond that malloc uses mappings, whose size is limited."""

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 38, 22
SECCOMP_MODE_FILTER = 2
M_MMAP_THRESHOLD = -3
MAP_PRIVATE, MAP_ANONYMOUS, MAP_FIXED_NOREPLACE = 0x02, 0x20, 0x100000


class LockdownError(Exception):
    """This machine offers no way to shut the process in further."""


def lock(memory: int, cpu_seconds: int, filters: dict[str, str]) -> None:
    """Shut this process in. ``memory`` is how many bytes it may take besides what it has now, ``filters`` the filter of
    system calls for each kind of machine in hexadecimal digits, as the host has written it (``filter.py``).

    Raises LockdownError when there is no filter for this machine or the kernel does not accept it. Then run no code.
    """
    machine = os.uname().machine
    if machine not in filters:
        raise LockdownError(f"there is no seccomp filter for {machine}")
    libc = ctypes.CDLL(None, use_errno=True)
    space = _used_memory() + memory
    _lower_priority()
    _bound_objects(libc)
    _limit(space, cpu_seconds)
    _filter(libc, bytes.fromhex(filters[machine]))


def _bound_objects(libc: ctypes.CDLL) -> None:
    """Have malloc take every large object as a mapping of its own, whose size the filter sees.

    It falls back on the break, so a page that stands in the break's way keeps that small.
    """
    if hasattr(libc, "mallopt"):  # glibc; others take mappings for what is large by themselves
        libc.mallopt(M_MMAP_THRESHOLD, 1024 * 1024)
    libc.sbrk.restype = libc.mmap.restype = ctypes.c_void_p
    page = resource.getpagesize()
    top = int(libc.sbrk(ctypes.c_long(0)) or 0)
    place = (top + HEAP) // page * page
    how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE
    libc.mmap(ctypes.c_void_p(place), ctypes.c_size_t(page), 0, how, -1, ctypes.c_long(0))


def _lower_priority() -> None:
    """Let others have the processor first, and be the first to go when the machine runs out of memory."""
    os.nice(10)
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
            file.write("1000")
    except OSError:  # a machine without it
        return


def _used_memory() -> int:
    """Bytes of address space that the process has now."""
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123
        return int(file.read().split()[0]) * resource.getpagesize()


def _limit(space: int, cpu_seconds: int) -> None:
    for kind, most in (
        (resource.RLIMIT_AS, space),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        allowed = resource.getrlimit(kind)[1]
        bound = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(kind, (bound, bound))


def _filter(libc: ctypes.CDLL, code: bytes) -> None:
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise LockdownError("this process cannot give up privileges")
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(header), 0, 0) != 0:
        raise LockdownError(f"the kernel does not accept a seccomp filter: {os.strerror(ctypes.get_errno())}")
