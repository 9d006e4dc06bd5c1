"""The system as a program in the sandbox finds it: what of this machine it may read, and the files made up for it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from trunkline import SandboxLimits
from trunkline_sandbox.bubblewrap.uplink import RESOLVER

TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Beside ``/usr``: links into it on most systems, folders on some."""

ETC = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "debian_version", "fonts", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "localtime", "magic", "magic.mime", "mime.types", "os-release", "protocols", "python3",
    "services", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "pki/tls/certs", "pki/ca-trust/extracted",
)  # fmt: skip
"""Files of ``/etc`` that every program may read. Files that may hold a secret (pip.conf, npmrc, gitconfig, shadow) are
not in the list."""

ETC_NETWORK = ("gai.conf", "host.conf", "hosts")

PROC_READ_ONLY = ("bus", "fs", "irq", "sys", "sysrq-trigger")
"""Paths of ``/proc`` through which a program can change the machine. When Trunkline runs as root, these files treat a
program as root in spite of its namespace, and bubblewrap leaves them writable."""

PROC_HIDDEN = ("kcore", "keys", "kmsg", "latency_stats", "sched_debug", "timer_list")

USER = 1000
"""The user that a program sees as its own: the one that runs Trunkline, without any rights over the machine."""

GENERATED_FILES = {
    "/etc/passwd": f"agent:x:{USER}:{USER}::/tmp:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
    "/etc/group": f"agent:x:{USER}:\nnogroup:x:65534:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
}
HOSTS = {"/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n"}
RESOLV = {"/etc/resolv.conf": f"nameserver {RESOLVER}\n"}


def system_options(limits: SandboxLimits, further: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    """The options of bubblewrap that show the system."""
    yield "--ro-bind", "/usr", "/usr"
    for name in TOP:
        path = Path("/", name)
        if path.is_symlink():
            yield "--symlink", str(path.readlink()), str(path)
        elif path.is_dir():
            yield "--ro-bind", str(path), str(path)
    for name in (*ETC, *_network_files(limits)):
        yield "--ro-bind-try", f"/etc/{name}", f"/etc/{name}"
    for path in further:
        yield "--ro-bind-try", str(path), str(path)


def proc_options(empty: str) -> Iterator[tuple[str, ...]]:
    """The options that close what of ``/proc`` belongs to the machine; ``empty`` is a file without content."""
    for name in PROC_READ_ONLY:
        yield "--ro-bind-try", f"/proc/{name}", f"/proc/{name}"
    for name in PROC_HIDDEN:
        if Path("/proc", name).exists():
            yield "--ro-bind", empty, f"/proc/{name}"


def generated_files(limits: SandboxLimits) -> dict[str, str]:
    """The files that are made up: their places and their texts."""
    if limits.host_network:
        return GENERATED_FILES
    return {**GENERATED_FILES, **(RESOLV if limits.network else HOSTS)}


def _network_files(limits: SandboxLimits) -> tuple[str, ...]:
    """The files of ``/etc`` for name resolution. The resolvers are this machine's own only in its own network."""
    if limits.host_network:
        return (*ETC_NETWORK, "resolv.conf")
    return ETC_NETWORK if limits.network else ()
