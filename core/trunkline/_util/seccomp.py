"""Writes filters of system calls: instructions of classic BPF as seccomp(2) takes them. Imports nothing of ours.

An instruction is ``(code, if true, if false, value)``; the middle two are how many instructions to pass over.
"""

import struct

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""What the kernel calls the machines that we know the system calls of (linux/audit.h)."""

LOAD, EQUAL, GREATER, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06

ALLOW, KILL = 0x7FFF0000, 0x80000000

Instruction = tuple[int, int, int, int]
"""An instruction of classic BPF: code, jump if true, jump if false, operand (``struct sock_filter``)."""

NUMBER = (LOAD, 0, 0, 0)
"""Loads the number of the system call."""


def errno_action(number: int) -> int:
    """What to return so that the call fails with this errno (SECCOMP_RET_ERRNO)."""
    return 0x00050000 | number


def architecture_check(machine: str) -> list[Instruction]:
    """Kill what calls by the numbers of another architecture, then load the number of the call."""
    return [(LOAD, 0, 0, 4), (EQUAL, 1, 0, ARCHITECTURES[machine]), (RETURN, 0, 0, KILL), NUMBER]


def on_call(number: int, then: list[Instruction]) -> list[Instruction]:
    """These instructions for the call ``number``; the others pass them by. They have to end in a return."""
    return [(EQUAL, 0, len(then), number), *then]


def load_low(argument: int) -> Instruction:
    """Loads the lower 32 bits of an argument."""
    return (LOAD, 0, 0, 16 + 8 * argument)


def load_high(argument: int) -> Instruction:
    """Loads the upper 32 bits of an argument."""
    return (LOAD, 0, 0, 20 + 8 * argument)


def return_action(what: int) -> Instruction:
    """Ends the filter."""
    return (RETURN, 0, 0, what)


def encode_filter(instructions: list[Instruction]) -> bytes:
    """The filter as the kernel and ``bwrap --seccomp`` read it."""
    return b"".join(struct.pack("HBBI", *each) for each in instructions)
