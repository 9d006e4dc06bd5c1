"""The specification of a container, and the orders that its first process reads. Pure."""

import errno
import hashlib
import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from trunkline import SandboxLimits
from trunkline.api.sandbox import WORKSPACE, ProgramRequest
from trunkline_sandbox.masks import EMPTY_FILE, Masks
from trunkline_sandbox.seccomp_filter import DENIED_CALLS, FAMILIES, NEW_NAMESPACES, TERMINAL_INPUT

MIB = 1024 * 1024

INIT_COMMAND = ("/bin/sh", "-c", 'read -r n && eval "$(dd bs="$n" count=1 iflag=fullblock 2>/dev/null)"')
"""The first process of every container: waits for its orders on standard input, so that it can be there before the
program is known; without any it ends. It reads not one byte too many: the rest is the program's. It stays while the
program runs, and takes all others along when it ends."""


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """The properties of a container, independent of the program that runs in it."""

    image: str
    workspace: Path | None
    masks: Masks
    read_only: tuple[tuple[str, Path], ...]
    limits: SandboxLimits

    @classmethod
    def for_program(cls, program: ProgramRequest, image: str, masks: Masks) -> "ContainerSpec":
        """The place for a program. Time and output are no concern of the container's."""
        limits = program.limits
        held = SandboxLimits(
            memory=limits.memory,
            cpus=limits.cpus,
            processes=limits.processes,
            network=limits.network,
            host_network=limits.host_network,
            writable=limits.writable,
            repository=limits.repository,
        )
        return cls(image, program.workspace, masks, tuple(program.read_only.items()), held)

    @property
    def key(self) -> str:
        """The same for places that are alike."""
        return hashlib.sha256(repr(self).encode()).hexdigest()


def create_request(place: ContainerSpec, labels: dict[str, str]) -> dict[str, Any]:
    """Return the body of ``POST /containers/create``."""
    return {
        "Image": place.image,
        "Cmd": list(INIT_COMMAND),
        "Entrypoint": [],
        "User": f"{os.getuid()}:{os.getgid()}",
        "WorkingDir": WORKSPACE,
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "NetworkDisabled": not (place.limits.network or place.limits.host_network),
        "Labels": labels,
        "HostConfig": _host(place),
    }


def _host(place: ContainerSpec) -> dict[str, Any]:
    limits = place.limits
    memory = limits.memory * MIB
    return {
        "Mounts": _mounts(place),
        "ReadonlyRootfs": True,
        "Tmpfs": {"/tmp": f"rw,nosuid,nodev,mode=1777,size={memory // 2}"},
        "NetworkMode": "host" if limits.host_network else "bridge" if limits.network else "none",
        "IpcMode": "private",
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges", f"seccomp={seccomp_profile()}"],
        "Memory": memory,
        "MemorySwap": memory,
        "NanoCpus": int(limits.cpus * 1_000_000_000),
        "PidsLimit": limits.processes + 1,  # one is the keeper
        "ShmSize": memory // 2,
        "Ulimits": [
            {"Name": name, "Soft": most, "Hard": most}
            for name, most in (("core", 0), ("nofile", 1024), ("fsize", 1024 * MIB))
        ],
        "LogConfig": {"Type": "none"},
        "RestartPolicy": {"Name": "no"},
    }


def _mounts(place: ContainerSpec) -> list[dict[str, Any]]:
    binds = [(at, path, True) for at, path in place.read_only]
    if place.workspace is not None:
        binds += [
            (str(PurePosixPath(WORKSPACE, name)), place.workspace / name, read_only)
            for name, read_only in _folders(place).items()
        ]
        binds += [(f"{WORKSPACE}/{name}", EMPTY_FILE, True) for name in place.masks.hidden]
    return [
        {"Type": "bind", "Target": at, "Source": str(path), "ReadOnly": read_only}
        for at, path, read_only in binds
    ]


def _folders(place: ContainerSpec) -> dict[str, bool]:
    """The folders of the workspace that are mounts, each with whether it is read-only: the workspace itself, bare
    repositories, and the folders above what is closed, since nobody in a container can rename a mount."""
    hidden, locked = place.masks.hidden, place.masks.locked
    above = {folder for name in (*hidden, *locked) for folder in PurePosixPath(name).parents}
    closed = {PurePosixPath(name) for name in locked if name != place.limits.repository}
    return {
        str(folder): not place.limits.writable or any(folder.is_relative_to(one) for one in closed)
        for folder in sorted({PurePosixPath(), *above, *closed})
    }


def start_orders(program: ProgramRequest) -> bytes:
    """Return the orders for the first process: a length, and a script of that length that runs the program.

    ``env -i`` leaves nothing of the image's environment, and the inner shell tells of a program that is not there.
    """
    words = [f"{name}={value}" for name, value in program.env.items()]
    command = shlex.join(["env", "-i", *words, "/bin/sh", "-c", 'exec "$@"', "sh", *program.argv])
    script = f"cd {shlex.quote(program.working_directory)} && {command}".encode()
    return b"%d\n%s" % (len(script), script)


class ContainerInspection(msgspec.Struct, frozen=True):
    """The fields of ``GET /containers/ID/json`` that are used here."""

    state: "ContainerState" = msgspec.field(name="State")


class ContainerState(msgspec.Struct, frozen=True):
    """The state of a container."""

    running: bool = msgspec.field(name="Running", default=False)
    out_of_memory: bool = msgspec.field(name="OOMKilled", default=False)
    exit_code: int = msgspec.field(name="ExitCode", default=0)


SeccompRule = dict[str, Any]


def seccomp_profile() -> str:
    """The filter of ``seccomp_filter`` as a profile of Docker, in JSON: both backends deny the same. Docker's own
    profile lets a program reach the host of a virtual machine by vsock, and trace the first process of its container.

    Calls of other architectures than the machine's own are killed.
    """
    rules = [_deny_rule([*DENIED_CALLS], errno.EPERM), _deny_rule(["clone3"], errno.ENOSYS)]
    for bit in (1 << at for at in range(32)):
        if bit & NEW_NAMESPACES:
            rules.append(_deny_rule(["clone"], errno.EPERM, _condition(0, "MASKED_EQ", bit, bit)))
    rules += [_deny_rule(["ioctl"], errno.EPERM, _condition(1, "EQ", request)) for request in TERMINAL_INPUT]
    sockets = ["socket", "socketpair"]
    rules.append(_deny_rule(sockets, errno.EAFNOSUPPORT, _condition(0, "GT", max(FAMILIES))))
    for family in set(range(max(FAMILIES))) - set(FAMILIES):
        rules.append(_deny_rule(sockets, errno.EAFNOSUPPORT, _condition(0, "EQ", family)))
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})


def _deny_rule(names: list[str], code: int, *conditions: SeccompRule) -> SeccompRule:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": code, "args": [*conditions]}


def _condition(argument: int, comparison: str, value: int, second: int = 0) -> SeccompRule:
    return {"index": argument, "op": f"SCMP_CMP_{comparison}", "value": value, "valueTwo": second}
