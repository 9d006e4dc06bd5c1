"""Writes seccomp filters as classic BPF instructions (seccomp(2)). It imports no other module of Trunkline.

An instruction is ``(code, if true, if false, operand)``. The middle two are the numbers of instructions to skip.
"""

import struct

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The kernel's numbers of the architectures whose system calls are known (linux/audit.h)."""

LOAD, EQUAL, GREATER, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06

ALLOW, KILL = 0x7FFF0000, 0x80000000

Instruction = tuple[int, int, int, int]
"""An instruction of classic BPF: code, jump if true, jump if false, operand (``struct sock_filter``)."""

NUMBER = (LOAD, 0, 0, 0)
"""The instruction that loads the number of the system call."""


def errno_action(number: int) -> int:
    """Return the action that makes the call fail with this errno (SECCOMP_RET_ERRNO)."""
    return 0x00050000 | number


def architecture_check(machine: str) -> list[Instruction]:
    """Return the instructions that kill calls of another architecture, then load the number of the call."""
    return [(LOAD, 0, 0, 4), (EQUAL, 1, 0, ARCHITECTURES[machine]), (RETURN, 0, 0, KILL), NUMBER]


def on_call(number: int, then: list[Instruction]) -> list[Instruction]:
    """Return the instructions that run ``then`` for the call ``number`` and skip it for other calls. ``then`` must
    end in a return.
    """
    return [(EQUAL, 0, len(then), number), *then]


def load_low(argument: int) -> Instruction:
    """Return the instruction that loads the lower 32 bits of an argument."""
    return (LOAD, 0, 0, 16 + 8 * argument)


def load_high(argument: int) -> Instruction:
    """Return the instruction that loads the upper 32 bits of an argument."""
    return (LOAD, 0, 0, 20 + 8 * argument)


def return_action(what: int) -> Instruction:
    """Return the instruction that ends the filter with this action."""
    return (RETURN, 0, 0, what)


def encode_filter(instructions: list[Instruction]) -> bytes:
    """Return the filter as the kernel and ``bwrap --seccomp`` read it."""
    return b"".join(struct.pack("HBBI", *each) for each in instructions)
