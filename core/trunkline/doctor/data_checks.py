"""Checks of memory and of the gateway's files."""

import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from trunkline.abc.platform import HealthResult
from trunkline.doctor.bus_checks import living
from trunkline.doctor.finding import Patient, bad, fine, odd
from trunkline.messages.blocks import BlockConfig
from trunkline.messages.policies import Policy
from trunkline.monitor.standing import PREFERENCES, Preferences
from trunkline.policy import day_of
from trunkline.runtime.restoring import was_broken_off
from trunkline.toml import read_toml


async def home_restore(patient: Patient) -> HealthResult:
    """home.restore: no restore was broken off in its middle."""
    if not was_broken_off(patient.home.path):
        return fine("No restore was broken off")
    return bad(
        f"A restore into {patient.home.path} was broken off in its middle.",
        "Start Trunkline once: it puts back what was there before.",
    )


BROKEN_CHUNKS = (
    "SELECT files.path, chunks.fault FROM chunks JOIN passages ON passages.id = chunks.passage"
    " JOIN files ON files.id = passages.file WHERE chunks.fault != '' ORDER BY files.path"
)


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


async def memory_lock(patient: Patient) -> HealthResult:
    """memory.lock: nobody but our own memory worker holds the memory root.

    The pid in the file is read and the lock is not tried, so that a worker that starts now is not disturbed.
    """
    holder = _holder(patient.home.memory / ".git" / "trunkline" / "lock")
    if holder is None:
        return fine("Nobody holds the memory root")
    beats = await living(patient) if patient.bus is not None else []
    ours = {beat.pid for beat in beats if beat.kind == "memory"}
    if holder in ours or (patient.run is not None and holder == patient.run.pid):
        return fine(f"Our memory worker (pid {holder}) holds the memory root")
    return odd(
        f"Process {holder} holds {patient.home.memory} and is no worker that we know.",
        "Stop it before you start Trunkline, or use another memory root.",
    )


async def memory_settings(patient: Patient) -> HealthResult:
    """memory.settings: `preferences.toml` and each `block.toml` in memory can be read and hold what fits."""
    root = patient.home.memory
    blocks = dict.fromkeys(sorted(root.glob("blocks/*/block.toml")), BlockConfig)
    files: dict[Path, type[msgspec.Struct]] = {root / PREFERENCES: Preferences, **blocks}
    wrong = [f"{file}: {problem}" for file, type in files.items() if (problem := _problem(file, type))]
    if not wrong:
        return fine(f"The preferences can be read, and so can the settings of all blocks ({len(blocks)})")
    hint = "Mend the file. Until then the defaults stand in for preferences, and a block of such a file is not run."
    return odd("; ".join(wrong), hint)


async def memory_policies(patient: Patient) -> HealthResult:
    """memory.policies: each file of `policies/` in memory is a policy. While one is not, no tool may be used."""
    files = sorted((patient.home.memory / "policies").rglob("*.json"))
    wrong = [f"{file}: {problem}" for file in files if (problem := _policy_problem(file))]
    if wrong:
        return odd("; ".join(wrong), "Mend or delete the file: until then no agent may use any tool.")
    return fine(f"All policies can be read ({len(files)})")


async def memory_names(patient: Patient) -> HealthResult | None:
    """memory.names: rules and the `tools` of blocks name tools by their own names. By another name, by which
    models call one, a rule forbids and asks but permits nothing."""
    if patient.plugins is None:
        return None
    wrong = [
        f"{file}: {name} is another name of {', '.join(meant)}"
        for file, name in _names_said(patient.home.memory)
        if (meant := patient.plugins.tools_called(name))
    ]
    if wrong:
        return odd("; ".join(wrong), "Write the tools' own names.")
    return fine("No rule and no block names a tool by another name than its own")


def _names_said(root: Path) -> Iterator[tuple[Path, str]]:
    """Each name of a tool in the files of policies and blocks; what cannot be read other checks tell."""
    for file in sorted((root / "policies").rglob("*.json")):
        with suppress(OSError, ValueError):
            policy = msgspec.json.decode(file.read_bytes(), type=Policy)
            if policy.resource.startswith("tool:"):
                yield file, policy.resource.rpartition(":")[2]
    for file in sorted(root.glob("blocks/*/block.toml")):
        with suppress(OSError, ValueError):
            config = msgspec.convert(read_toml(file.read_text(encoding="utf-8")), BlockConfig)
            yield from ((file, name) for name in config.tools or ())


def _policy_problem(file: Path) -> str:
    try:
        policy = msgspec.json.decode(file.read_bytes(), type=Policy)
        day_of(policy.conditions, datetime.now(UTC))
    except (OSError, ValueError) as error:
        return str(error)
    return ""


async def memory_chunks(patient: Patient) -> HealthResult:
    """memory.chunks: no file among the chunks of memory is broken, as far as the search index knows them."""
    import apsw

    index = patient.home.cache / "memory.db"
    if not index.exists():
        return fine("The chunks of memory are looked at when memory first starts")
    try:
        connection = apsw.Connection(str(index), flags=apsw.SQLITE_OPEN_READONLY)
        broken = list(connection.execute(BROKEN_CHUNKS))
        connection.close()
    except apsw.Error as error:
        return odd(f"{index} cannot be read: {error}.", "Memory makes it anew when it starts.")
    if not broken:
        return fine("No chunk of memory is broken")
    first = ", ".join(f"{path} ({code})" for path, code in broken[:3])
    return odd(
        f"{len(broken)} of the files among the chunks are none, and are passed over: {first}.",
        "Mend them with an editor, or take an earlier state: trunkline memory history, trunkline memory revert.",
    )


def _problem(file: Path, type: type[msgspec.Struct]) -> str:
    """What is wrong with a file of settings; nothing when it is well or absent."""
    try:
        msgspec.convert(read_toml(file.read_text(encoding="utf-8")), type)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _holder(lock: Path) -> int | None:
    """The pid in a lock file, if that process lives."""
    try:
        pid = int(lock.read_text(encoding="ascii").strip())
        os.kill(pid, 0)
    except PermissionError:
        return pid
    except (OSError, ValueError):
        return None
    return pid


async def gateway_port(patient: Patient) -> HealthResult:
    """gateway.port: the port is free, or our own gateway has it."""
    gateway = patient.config.settings.gateway
    if patient.run is not None and patient.run.gateway:
        return fine(f"The gateway answers at {patient.run.gateway}")
    if here := await _gateways_here(patient):
        return fine(f"A gateway runs on this host (pid {', '.join(map(str, here))})")
    if gateway.port == 0:
        return fine("Any free port is taken")
    problem = _port_problem(gateway.host, gateway.port)
    if problem is None:
        return fine(f"{gateway.host}:{gateway.port} is free")
    return bad(
        f"{gateway.host}:{gateway.port} cannot be used: {problem}.", "Set gateway.port to another one."
    )


async def _gateways_here(patient: Patient) -> list[int]:
    """The process ids of our gateways on this host; such a one has the port when workers run apart."""
    beats = await living(patient) if patient.bus is not None else []
    return [beat.pid for beat in beats if beat.kind == "gateway" and beat.host == socket.gethostname()]


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


async def gateway_local(patient: Patient) -> HealthResult:
    """gateway.local: the gateway listens on this machine only, unless configured otherwise."""
    host = patient.config.settings.gateway.host
    if host in ("127.0.0.1", "::1", "localhost"):
        return fine(f"The gateway listens on {host} only")
    origin = patient.config.origins["gateway.host"]
    return odd(
        f"The gateway listens on {host} ({origin}), so others can reach it.", "Use 127.0.0.1 behind a proxy."
    )
