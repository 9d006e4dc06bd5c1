"""Checks of memory and of the gateway's files."""

import errno
import socket
import stat

from trunkline.abc.platform import HealthResult
from trunkline.doctor.finding import Patient, bad, fine, odd


async def memory_history(patient: Patient) -> HealthResult:
    """memory.history: the memory root is a git repository whose history can be read (PA-F7)."""
    root = patient.home.memory
    if not (root / ".git").exists():
        return fine(f"{root} gets its history on the first start")
    import pygit2

    try:
        repository = pygit2.Repository(str(root))
        if repository.head_is_unborn:
            return fine("The history is empty so far")
        head = repository.head.peel(pygit2.Commit)
    except (pygit2.GitError, KeyError, ValueError) as error:
        return bad(f"The history of {root} cannot be read: {error}.", "Restore the folder from a backup.")
    return fine(f"The history of {root} ends at {str(head.id)[:10]}")


async def gateway_port(patient: Patient) -> HealthResult:
    """gateway.port: the port is free, or our own gateway has it."""
    gateway = patient.config.settings.gateway
    if patient.run is not None and patient.run.gateway:
        return fine(f"The gateway answers at {patient.run.gateway}")
    if gateway.port == 0:
        return fine("Any free port is taken")
    problem = _port_problem(gateway.host, gateway.port)
    if problem is None:
        return fine(f"{gateway.host}:{gateway.port} is free")
    return bad(
        f"{gateway.host}:{gateway.port} cannot be used: {problem}.", "Set gateway.port to another one."
    )


def _port_problem(host: str, port: int) -> str | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            taken = "another program has it"
            return (
                taken if error.errno == errno.EADDRINUSE else (error.strerror or "it cannot be bound").lower()
            )
    return None


async def gateway_token(patient: Patient) -> HealthResult:
    """gateway.token: the token file is readable for its owner only."""
    path = patient.home.token_file
    try:
        found = path.stat()
    except FileNotFoundError:
        return fine("The token is made on the first start")
    if not stat.S_ISREG(found.st_mode) or found.st_size == 0:
        return bad(f"{path} holds no token.", "Remove it; the next start makes a new one.")
    if stat.S_IMODE(found.st_mode) & 0o077:
        return bad(f"Other people on this machine can read {path}.", f"Run: chmod 600 {path}")
    return fine(f"{path} is readable for you only")


async def bind_local(patient: Patient) -> HealthResult:
    """gateway.local: the gateway listens on this machine only, unless configured otherwise."""
    host = patient.config.settings.gateway.host
    if host in ("127.0.0.1", "::1", "localhost"):
        return fine(f"The gateway listens on {host} only")
    origin = patient.config.origins["gateway.host"]
    return odd(
        f"The gateway listens on {host} ({origin}), so others can reach it.", "Use 127.0.0.1 behind a proxy."
    )
