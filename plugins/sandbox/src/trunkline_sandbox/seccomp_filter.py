"""The system calls that a program in the sandbox cannot make.

It is a list of what is denied, not of what is allowed: any program should run. What is on it reaches past namespaces
(keys, performance counters, io_uring, which no filter sees), makes new ones, or changes the machine; most of it needs
rights that the program has not, and is denied here a second time.
"""

import errno

from trunkline.api import seccomp
from trunkline.api.seccomp import Instruction, on_call, return_action

DENIED_CALLS = {  # name: its number on x86_64 and on aarch64; None where there is none
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "memfd_secret": (447, 447),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}

CLONE, CLONE3 = (56, 220), (435, 435)
IOCTL, SOCKET, SOCKETPAIR = (16, 29), (41, 198), (53, 199)

NEW_NAMESPACES = 0x7E020000
"""The flags of ``clone`` that make a namespace (sched(7)); new user namespaces open most holes of the kernel."""

TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: typing into the terminal of whoever looks on."""

FAMILIES = (1, 2, 10, 16)
"""Local sockets, IPv4, IPv6, netlink. Not vsock, which leads out to the host of a virtual machine and knows no network
namespaces, nor the kernel's own cryptography and other rarely tested doors."""

X32 = 0x40000000
"""From here up are the same calls again, for programs with short pointers."""


UNCOUNTED_CALLS = {"memfd_create": (319, 279), "shmget": (29, 194)}
"""System calls that allocate memory which no process needs to map, so that only a control group counts it."""


def filter_program(machine: str, *, grouped: bool = True) -> list[Instruction]:
    """The filter for ``x86_64`` or ``aarch64``; not ``grouped`` is for a program without a control group. Raises
    KeyError for another machine."""
    code = seccomp.architecture_check(machine)
    column = list(seccomp.ARCHITECTURES).index(machine)
    if machine == "x86_64":
        code += [(seccomp.AT_LEAST, 0, 1, X32), return_action(seccomp.errno_action(errno.ENOSYS))]
    denied = return_action(seccomp.errno_action(errno.EPERM))
    code += on_call(
        CLONE[column], [seccomp.load_low(0), (seccomp.ANY_BIT, 0, 1, NEW_NAMESPACES), denied, _ALLOWED]
    )
    # The flags of clone3 lie in memory, where no filter sees them; without it the C library uses clone.
    code += on_call(CLONE3[column], [return_action(seccomp.errno_action(errno.ENOSYS))])
    code += on_call(IOCTL[column], [seccomp.load_low(1), *_one_of(TERMINAL_INPUT, denied), _ALLOWED])
    for call in (SOCKET, SOCKETPAIR):
        family = [*_one_of(FAMILIES, _ALLOWED), return_action(seccomp.errno_action(errno.EAFNOSUPPORT))]
        code += on_call(call[column], [seccomp.load_low(0), *family])
    for numbers in DENIED_CALLS.values():
        if (number := numbers[column]) is not None:
            code += on_call(number, [denied])
    for numbers in () if grouped else UNCOUNTED_CALLS.values():
        code += on_call(numbers[column], [return_action(seccomp.errno_action(errno.ENOSYS))])
    return [*code, _ALLOWED]


_ALLOWED = return_action(seccomp.ALLOW)


def _one_of(values: tuple[int, ...], then: Instruction) -> list[Instruction]:
    return [each for value in values for each in ((seccomp.EQUAL, 0, 1, value), then)]
