"""Shuts a process in, for good: after ``lock()`` it can compute, and read and write the pipes that it has. Linux only.

The boundary is a seccomp filter that allows the few system calls of a computing Python and denies all others with
EPERM: no file can be opened, no socket made, no process begun, no other process seen. Beneath it lie limits (rlimits)
and, where the machine lets ordinary users have them, namespaces of its own without network and without any file.
Runs in the process that is shut in; imports nothing but the standard library.
"""

import ctypes
import os
import platform
import resource
import signal
import struct
import tempfile

OBJECT_BYTES = 10 * 1024 * 1024
"""How large one object may be: a larger mapping is denied, and what would need it is a MemoryError (RLM-F18)."""

SLACK = 64 * 1024
"""What an allocation adds to the object."""

HEAP = 1024 * 1024
"""How far the break may grow; beyond it malloc takes mappings, whose size is bounded."""

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""What the kernel calls them (linux/audit.h)."""

CALLS = {  # name: its number on x86_64 and on aarch64; None: there is none
    "read": (0, 63),
    "write": (1, 64),
    "brk": (12, 214),
    "munmap": (11, 215),
    "madvise": (28, 233),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "futex": (202, 98),
    "sched_yield": (24, 124),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "gettimeofday": (96, 169),
    "getrandom": (318, 278),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
"""What a computing Python needs. ``mmap``, ``mprotect`` and ``mremap`` are allowed within bounds."""

BOUNDED = {"mmap": (9, 222), "mprotect": (10, 226), "mremap": (25, 216)}

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 1, 38, 22
SECCOMP_MODE_FILTER = 2
ALLOW, DENY = 0x7FFF0000, 0x00050001  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO with EPERM
NO_MEMORY = 0x0005000C  # SECCOMP_RET_ERRNO with ENOMEM
KILL = 0x80000000
LOAD, EQUAL, GREATER, ANY_BIT, RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
PROT_EXEC = 4
M_MMAP_THRESHOLD = -3
MAP_PRIVATE, MAP_ANONYMOUS, MAP_FIXED_NOREPLACE = 0x02, 0x20, 0x100000

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000

Instruction = tuple[int, int, int, int]


class CannotLock(Exception):
    """This machine offers no way to shut the process in."""


def lock(parent: int, memory: int, cpu_seconds: int) -> bool:
    """Shut this process in, to die with ``parent``. ``memory`` is how many bytes it may take besides what it has now.

    Returns whether it has namespaces of its own as well. Raises CannotLock when there is no seccomp filter for this
    machine: nothing may be run then.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if platform.system() != "Linux" or platform.machine() not in ARCHITECTURES:
        raise CannotLock(
            f"there is no filter of system calls for {platform.system()} on {platform.machine()}"
        )
    space = _used() + memory
    _step_back()
    apart = _apart(libc)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != parent:
        raise CannotLock("the process that began this one is gone")
    _bound_objects(libc)
    _limit(space, cpu_seconds)
    _filter(libc, program(platform.machine()))
    return apart


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


def _step_back() -> None:
    """Let others have the processor first, and be the first to go when the machine runs out of memory."""
    os.nice(10)
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
            file.write("1000")
    except OSError:  # a machine without it
        return


def _apart(libc: ctypes.CDLL) -> bool:
    """Into namespaces without network and without files; False when ordinary users may not here."""
    try:
        empty = tempfile.mkdtemp(prefix="trunkline-repl-")
        os.chdir(empty)
        os.rmdir(empty)  # noqa: PTH106  a folder that is no more: nothing can ever be made in it
    except OSError:  # there is nowhere to make one
        empty = ""
    wanted = CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS
    if libc.unshare(wanted) != 0:
        return False
    return bool(empty and libc.chroot(b".") == 0)


def _used() -> int:
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


def _filter(libc: ctypes.CDLL, instructions: list[Instruction]) -> None:
    code = b"".join(struct.pack("HBBI", *each) for each in instructions)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(buffer))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise CannotLock("this process cannot give up privileges")
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(header), 0, 0) != 0:
        raise CannotLock(f"the kernel takes no filter of system calls: {os.strerror(ctypes.get_errno())}")


def program(machine: str) -> list[Instruction]:
    """The filter as instructions of classic BPF (seccomp(2))."""
    column = list(ARCHITECTURES).index(machine)
    bounded = {name: numbers[column] for name, numbers in BOUNDED.items()}
    most = OBJECT_BYTES + SLACK
    code: list[Instruction] = [
        (LOAD, 0, 0, 4),  # the architecture: numbers mean other calls on another
        (EQUAL, 1, 0, ARCHITECTURES[machine]),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, 0),  # the number of the call
    ]
    code += _when(bounded["mmap"], [*_at_most(1, most), *_not_executable(2), (RETURN, 0, 0, ALLOW)])
    code += _when(bounded["mprotect"], [*_not_executable(2), (RETURN, 0, 0, ALLOW)])
    code += _when(bounded["mremap"], [*_at_most(2, most), (RETURN, 0, 0, ALLOW)])
    for numbers in CALLS.values():
        code += _when(numbers[column], [(RETURN, 0, 0, ALLOW)])
    return [*code, (RETURN, 0, 0, DENY)]


def _when(number: int, then: list[Instruction]) -> list[Instruction]:
    """These instructions for the call ``number``; the others pass them by."""
    return [(EQUAL, 0, len(then), number), *then]


def _at_most(argument: int, most: int) -> list[Instruction]:
    """Deny with ENOMEM when an argument, of 64 bits, is above ``most``."""
    low = 16 + 8 * argument
    high_most, low_most = most >> 32, most & 0xFFFFFFFF
    return [
        (LOAD, 0, 0, low + 4),
        (GREATER, 3, 0, high_most),
        (EQUAL, 0, 3, high_most),
        (LOAD, 0, 0, low),
        (GREATER, 0, 1, low_most),
        (RETURN, 0, 0, NO_MEMORY),
    ]


def _not_executable(argument: int) -> list[Instruction]:
    """Deny memory that can be run."""
    return [(LOAD, 0, 0, 16 + 8 * argument), (ANY_BIT, 0, 1, PROT_EXEC), (RETURN, 0, 0, DENY)]
