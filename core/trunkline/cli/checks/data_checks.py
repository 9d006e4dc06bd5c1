"""Checks of memory and of the gateway's files."""

import errno
import socket
import stat
from datetime import UTC, datetime, timedelta

from trunkline.cli.checks.bus_checks import live_workers
from trunkline.cli.checks.check import CheckContext, failure, ok, warning
from trunkline.config.settings import DEFAULT_STORE
from trunkline.contracts.memory.store import MemoryStore
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline.errors import ConfigError
from trunkline.home.restore_transaction import was_interrupted
from trunkline.home.secret_file import SHORTEST
from trunkline.runtime.http.gateway_certificate import gateway_certificate, is_loopback
from trunkline.runtime.remotes.registry import RemoteRegistry
from trunkline.workers.memory.store_selection import choose_store, index_provider

SOON = timedelta(days=14)
"""How long before its end a certificate is reported."""


async def home_restore(context: CheckContext) -> HealthResult:
    """home.restore: no restore was interrupted."""
    if not was_interrupted(context.home.path):
        return ok("No restore was interrupted")
    return failure(
        f"A restore into {context.home.path} was interrupted.",
        "Start Trunkline once: it puts the previous contents back.",
    )


def chosen_store(context: CheckContext) -> MemoryStore | None:
    """Return the store of memory; None when it cannot be used (memory.store reports the reason)."""
    if context.plugins is None:
        return None
    try:
        return choose_store(context.plugins, context.config.settings.memory.store)
    except ConfigError:
        return None


async def memory_store(context: CheckContext) -> HealthResult | None:
    """memory.store: a loaded plugin provides the store that `[memory] store` names, or the default store."""
    if context.plugins is None:
        return None
    name = context.config.settings.memory.store
    try:
        index_provider(context.plugins, choose_store(context.plugins, name))
    except ConfigError as error:
        return failure(error.sentence, error.hint)
    return ok(f"Memory is kept by {name or DEFAULT_STORE}")


async def memory_lock(context: CheckContext) -> HealthResult:
    """memory.lock: no process but this home's memory worker has locked the memory root.

    The store tells who holds it, without trying the lock.
    """
    store = chosen_store(context)
    holder = None if store is None else store.holder(context.home.memory)
    if holder is None:
        return ok("The memory root is not locked")
    beats = await live_workers(context) if context.bus is not None else []
    ours = {beat.pid for beat in beats if beat.kind == "memory"}
    if holder in ours or (context.run is not None and holder == context.run.pid):
        return ok(f"This home's memory worker (pid {holder}) has locked the memory root")
    return warning(
        f"Process {holder} has locked {context.home.memory} and is not a worker of this home.",
        "Stop it before you start Trunkline, or use another memory root.",
    )


async def remotes_files(context: CheckContext) -> HealthResult | None:
    """remotes.files: each file in `remotes/` of the home is valid. While one is not, no other host can connect."""
    try:
        remotes = RemoteRegistry(context.home.remotes).all()
    except ConfigError as error:
        return failure(error.sentence, f"{error.hint} Until then no other host can connect.")
    return ok(f"{len(remotes)} other hosts may connect") if remotes else None


async def memory_purges(context: CheckContext) -> HealthResult:
    """memory.purges: `audit/purges.jsonl`, the record of purges, can be read, and every purge is complete. While a line
    of the file cannot be read, agents cannot write to memory and no archive can be imported, because purged data might
    return."""
    from trunkline.workers.memory.purge.purge_log import parse_purge_log

    file = context.home.memory / "audit" / "purges.jsonl"
    try:
        notes, damaged = parse_purge_log(file.read_text("utf-8")) if file.exists() else ([], [])
    except (OSError, UnicodeDecodeError) as error:
        return failure(f"{file} cannot be read: {error}.", PURGES)
    if damaged:
        return failure(f"{file}:{damaged[0]} is not a valid record of a purge.", PURGES)
    begun = [note.target for note in notes if note.state == "begun"]
    if begun:
        return warning(
            f"A purge is incomplete: {', '.join(begun)}.", f"Run it again: trunkline memory purge {begun[0]}"
        )
    return ok(f"The records of purges can be read ({len(notes)})")


PURGES = (
    "Until this is fixed, agents cannot write to memory. Run: trunkline memory history "
    "audit/purges.jsonl, then trunkline memory revert, and restart."
)


async def gateway_port(context: CheckContext) -> HealthResult:
    """gateway.port: the port is free, or this home's gateway uses it."""
    gateway = context.config.settings.gateway
    if context.run is not None and context.run.gateway:
        return ok(f"The gateway answers at {context.run.gateway}")
    if here := await _gateways_here(context):
        return ok(f"A gateway runs on this host (pid {', '.join(map(str, here))})")
    if gateway.port == 0:
        return ok("The gateway uses any free port")
    problem = _port_problem(gateway.host, gateway.port)
    if problem is None:
        return ok(f"{gateway.host}:{gateway.port} is free")
    return failure(
        f"{gateway.host}:{gateway.port} cannot be used: {problem}.", "Set gateway.port to another port."
    )


async def _gateways_here(context: CheckContext) -> list[int]:
    """Return the process ids of this home's gateways on this host. Such a gateway uses the port when workers run as
    separate processes.
    """
    beats = await live_workers(context) if context.bus is not None else []
    return [beat.pid for beat in beats if beat.kind == "gateway" and beat.host == socket.gethostname()]


def _port_problem(host: str, port: int) -> str | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            taken = "another program uses it"
            return (
                taken if error.errno == errno.EADDRINUSE else (error.strerror or "it cannot be bound").lower()
            )
    return None


async def gateway_token(context: CheckContext) -> HealthResult:
    """gateway.token: the token file holds a token, and only its owner can read it."""
    path = context.home.token_file
    try:
        found = path.stat()
    except FileNotFoundError:
        return ok("The first start creates the token")
    if not stat.S_ISREG(found.st_mode) or found.st_size == 0:
        return failure(f"{path} holds no token.", "Delete the file; the next start creates a new token.")
    if stat.S_IMODE(found.st_mode) & 0o077:
        return failure(f"Other users of this machine can read {path}.", f"Run: chmod 600 {path}")
    if len(path.read_text(encoding="utf-8", errors="replace").strip()) < SHORTEST:
        return failure(
            f"The token in {path} is shorter than {SHORTEST} characters, so the gateway does not start.",
            "Delete the file; the next start creates a new token.",
        )
    return ok(f"Only you can read {path}")


async def gateway_address(context: CheckContext) -> HealthResult:
    """gateway.address: the gateway listens on a loopback address only, or with a certificate that is valid."""
    gateway = context.config.settings.gateway
    host = gateway.host
    try:
        tls = gateway_certificate(gateway)
    except ConfigError as error:
        return failure(error.sentence, error.hint)
    if tls is not None:
        left = tls.expires - datetime.now(UTC)
        if left < SOON:
            return warning(
                f"The certificate {tls.certificate} ends on {tls.expires.date()}.",
                "Renew it: trunkline certificate --replace, or the program that made it.",
            )
        return ok(f"The gateway listens on {host} with TLS until {tls.expires.date()}")
    if is_loopback(host):
        return ok(f"The gateway listens on {host} only")
    origin = context.config.origins["gateway.host"]
    return warning(
        f"The gateway listens on {host} ({origin}), so other machines can reach it.",
        "Make sure that only the proxy reaches it (gateway.behind_proxy).",
    )
