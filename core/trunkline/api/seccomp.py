"""Filters of system calls, as instructions of classic BPF."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.seccomp import ALLOW as ALLOW
    from trunkline._util.seccomp import ANY_BIT as ANY_BIT
    from trunkline._util.seccomp import ARCHITECTURES as ARCHITECTURES
    from trunkline._util.seccomp import AT_LEAST as AT_LEAST
    from trunkline._util.seccomp import EQUAL as EQUAL
    from trunkline._util.seccomp import GREATER as GREATER
    from trunkline._util.seccomp import Instruction as Instruction
    from trunkline._util.seccomp import architecture_check as architecture_check
    from trunkline._util.seccomp import encode_filter as encode_filter
    from trunkline._util.seccomp import errno_action as errno_action
    from trunkline._util.seccomp import load_high as load_high
    from trunkline._util.seccomp import load_low as load_low
    from trunkline._util.seccomp import on_call as on_call
    from trunkline._util.seccomp import return_action as return_action
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
