"""The system as a program in the sandbox finds it: what of this machine it may read, and the files made up for it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Beside ``/usr``: links into it on most systems, folders on some."""

ETC = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "debian_version", "fonts", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "localtime", "magic", "magic.mime", "mime.types", "os-release", "protocols", "python3",
    "services", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "pki/tls/certs", "pki/ca-trust/extracted",
)  # fmt: skip
"""What of ``/etc`` every program may read. What may hold a secret (pip.conf, npmrc, gitconfig, shadow) is not on it."""

ETC_NETWORK = ("gai.conf", "host.conf", "hosts", "resolv.conf")

USER = 1000
"""Who a program is, to itself; here it is whoever runs Trunkline, without any rights over the machine."""

MADE = {
    "/etc/passwd": f"agent:x:{USER}:{USER}::/tmp:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
    "/etc/group": f"agent:x:{USER}:\nnogroup:x:65534:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
}
HOSTS = {"/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n"}


def readable(network: bool, further: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    """The options of bubblewrap that show the system."""
    yield "--ro-bind", "/usr", "/usr"
    for name in TOP:
        path = Path("/", name)
        if path.is_symlink():
            yield "--symlink", str(path.readlink()), str(path)
        elif path.is_dir():
            yield "--ro-bind", str(path), str(path)
    for name in (*ETC, *(ETC_NETWORK if network else ())):
        yield "--ro-bind-try", f"/etc/{name}", f"/etc/{name}"
    for path in further:
        yield "--ro-bind-try", str(path), str(path)


def made(network: bool) -> dict[str, str]:
    """The files that are made up: their places and their texts."""
    return MADE if network else {**MADE, **HOSTS}
