"""The filter of system calls that a session's process takes on in the sandbox: few are allowed, all others fail with
EPERM.

Written by the host and handed to the process, which takes it on (``child/lockdown.py``).
"""

import errno

from trunkline.api import seccomp
from trunkline.api.seccomp import Instruction, on_call, return_action

OBJECT_BYTES = 10 * 1024 * 1024
"""The largest size of an object, in bytes. A larger mapping is denied, and the code gets a MemoryError."""

SLACK = 64 * 1024
"""Bytes that an allocation adds to the object."""

ALLOWED_CALLS = {  # name: its number on x86_64 and on aarch64; None: there is none
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
"""The system calls that a computing Python needs. ``mmap``, ``mprotect`` and ``mremap`` are allowed within limits."""

BOUNDED_CALLS = {"mmap": (9, 222), "mprotect": (10, 226), "mremap": (25, 216)}

PROT_EXEC = 4

ALLOWED, DENIED = return_action(seccomp.ALLOW), return_action(seccomp.errno_action(errno.EPERM))
NO_MEMORY = return_action(seccomp.errno_action(errno.ENOMEM))


def filter_program(machine: str) -> list[Instruction]:
    """The filter as instructions of classic BPF (seccomp(2))."""
    column = list(seccomp.ARCHITECTURES).index(machine)
    bounded = {name: numbers[column] for name, numbers in BOUNDED_CALLS.items()}
    most = OBJECT_BYTES + SLACK
    code = seccomp.architecture_check(machine)
    code += on_call(bounded["mmap"], [*_at_most(1, most), *_not_executable(2), ALLOWED])
    code += on_call(bounded["mprotect"], [*_not_executable(2), ALLOWED])
    code += on_call(bounded["mremap"], [*_at_most(2, most), ALLOWED])
    for numbers in ALLOWED_CALLS.values():
        code += on_call(numbers[column], [ALLOWED])
    return [*code, DENIED]


def _at_most(argument: int, most: int) -> list[Instruction]:
    """Deny with ENOMEM when an argument, of 64 bits, is above ``most``."""
    high_most, low_most = most >> 32, most & 0xFFFFFFFF
    return [
        seccomp.load_high(argument),
        (seccomp.GREATER, 3, 0, high_most),
        (seccomp.EQUAL, 0, 3, high_most),
        seccomp.load_low(argument),
        (seccomp.GREATER, 0, 1, low_most),
        NO_MEMORY,
    ]


def _not_executable(argument: int) -> list[Instruction]:
    """Deny memory that can be run."""
    return [seccomp.load_low(argument), (seccomp.ANY_BIT, 0, 1, PROT_EXEC), DENIED]
