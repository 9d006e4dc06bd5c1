"""Landlock on Linux: a process permanently gives up rights, for itself and for all processes that it starts. Needs no
root.

Numbers and meanings are those of the kernel's include/uapi/linux/landlock.h. Rights that the kernel does not know yet
are skipped.
"""

import ctypes
import struct
import sys

_CREATE_RULESET, _RESTRICT_SELF = 444, 446  # the same on every architecture
_VERSION_FLAG = 1
_NO_NEW_PRIVS = 38

_WRITE_FILE = 1 << 1
_REMOVE_AND_MAKE = 0b1_1111_1111 << 4
"""The rights to remove a folder or file, and to make a device, folder, file, socket, pipe, block device or link."""

_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_TCP_BIND_AND_CONNECT = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11


def give_up_writing() -> bool:
    """Give up the rights to change files, to use TCP ports, and to signal processes outside. Report whether the kernel
    accepted.

    A kernel that does not know one of these rights does not restrict it.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    if version < 1:
        return False
    rules = ctypes.create_string_buffer(_rules(version))
    ruleset = libc.syscall(_CREATE_RULESET, rules, len(rules.raw) - 1, 0)
    if ruleset < 0 or libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)


def _rules(version: int) -> bytes:
    """Return the rights that the ruleset handles. No rule allows any of them, so they are denied everywhere."""
    files = _WRITE_FILE | _REMOVE_AND_MAKE
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        files |= right if version >= since else 0
    rules = struct.pack("=Q", files)
    if version >= 4:
        rules += struct.pack("=Q", _TCP_BIND_AND_CONNECT)
    if version >= 6:
        rules += struct.pack("=Q", _ABSTRACT_SOCKETS_AND_SIGNALS)
    return rules
