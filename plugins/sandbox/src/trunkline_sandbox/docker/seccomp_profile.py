"""The filter of ``calls.py`` in the words of Docker's seccomp profiles: both backends deny the same.

Docker's own profile lets a program reach the host of a virtual machine by vsock, and trace the first process of its
container.
"""

import errno
import json
from typing import Any

from trunkline_sandbox.seccomp_filter import DENIED_CALLS, FAMILIES, NEW_NAMESPACES, TERMINAL_INPUT

SeccompRule = dict[str, Any]


def seccomp_profile() -> str:
    """The profile as JSON. Calls of other architectures than the machine's own are killed."""
    rules = [_deny_rule([*DENIED_CALLS], errno.EPERM), _deny_rule(["clone3"], errno.ENOSYS)]
    for bit in (1 << at for at in range(32)):
        if bit & NEW_NAMESPACES:
            rules.append(_deny_rule(["clone"], errno.EPERM, _condition(0, "MASKED_EQ", bit, bit)))
    rules += [_deny_rule(["ioctl"], errno.EPERM, _condition(1, "EQ", wish)) for wish in TERMINAL_INPUT]
    sockets = ["socket", "socketpair"]
    rules.append(_deny_rule(sockets, errno.EAFNOSUPPORT, _condition(0, "GT", max(FAMILIES))))
    for family in set(range(max(FAMILIES))) - set(FAMILIES):
        rules.append(_deny_rule(sockets, errno.EAFNOSUPPORT, _condition(0, "EQ", family)))
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})


def _deny_rule(names: list[str], code: int, *conditions: SeccompRule) -> SeccompRule:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": code, "args": [*conditions]}


def _condition(argument: int, comparison: str, value: int, second: int = 0) -> SeccompRule:
    return {"index": argument, "op": f"SCMP_CMP_{comparison}", "value": value, "valueTwo": second}
