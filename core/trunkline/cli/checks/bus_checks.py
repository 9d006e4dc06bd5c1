"""Checks of the bus and of the workers on it."""

import shutil
import subprocess
import sys
from pathlib import Path

import anyio

from trunkline.cli.checks.check import CheckContext, failure, ok, warning
from trunkline.contracts.gateway.subjects import FILE_STORE
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline.contracts.retention import MEGABYTE
from trunkline.contracts.streams import STREAMS
from trunkline.contracts.tools.subjects import RESULT_STORE
from trunkline.contracts.workers.messages import WorkerHeartbeat
from trunkline.contracts.workers.subjects import CLAIM_STORE, WORKER_BUCKET
from trunkline.home.bus_migration import BUS_FORMAT, read_bus_format
from trunkline.workers import KINDS
from trunkline_bus import BusError, StreamUnavailable
from trunkline_bus.streams.admin import StreamState, stream_state

NEARLY_FULL = 0.9
"""The part of its limit above which a stream gets a warning."""

START_HINT = 'Start the platform with "trunkline up".'


async def bus_reachable(context: CheckContext) -> HealthResult:
    """bus.reachable: the server answers, or the embedded one can be started."""
    if context.bus is not None:
        return ok(f"NATS answers at {context.bus.link.settings.redacted_url}")
    if context.bus_error:
        return failure(context.bus_error, "Start the server, or correct bus.url and its credentials.")
    binary = server_binary()
    if binary is None:
        return failure(
            "nats-server is not installed.", 'Install it with "make" in the checkout, or set bus.url.'
        )
    return ok("The platform does not run; the embedded server can be started")


async def bus_server_version(context: CheckContext) -> HealthResult | None:
    """bus.server_version: the version of nats-server is 2.14 or later."""
    if context.bus is not None:
        return ok(f"nats-server {context.bus.server_version}")
    binary = server_binary()
    if binary is None or context.bus_error:
        return None
    said = await anyio.run_process([str(binary), "--version"], check=False, stderr=subprocess.STDOUT)
    version = said.stdout.decode(errors="replace").rpartition("v")[2].strip()
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers >= (2, 14):
        return ok(f"nats-server {version}")
    return failure(
        f"{binary} is version {version or 'unknown'}; Trunkline needs 2.14 or later.",
        "Install a newer version.",
    )


async def workers_alive(context: CheckContext) -> HealthResult | None:
    """workers.alive: at least one worker of each of the five kinds is running."""
    if context.bus is None:
        return None
    beats = await live_workers(context)
    missing = [kind for kind in KINDS if not any(beat.kind == kind for beat in beats)]
    if not missing:
        return ok(f"{len(beats)} workers run, of all five kinds")
    names = ", ".join(missing)
    return failure(
        f"No worker of the kind {names} is running.",
        f'{START_HINT} Or run one: "trunkline run {missing[0]}".',
    )


async def memory_writes(context: CheckContext) -> HealthResult | None:
    """memory.writes: the memory worker can write, and every answer is stored."""
    if context.bus is None:
        return None
    beats = await live_workers(context)
    troubles = [beat.trouble for beat in beats if beat.kind == "memory" and beat.trouble]
    unstored = sum(beat.unstored for beat in beats)
    if not troubles and not unstored:
        return ok("Memory can write, and no answer waits to be stored")
    said = [f"Memory cannot write: {trouble}." for trouble in troubles]
    if unstored:
        said.append(f"{unstored} {'answer waits' if unstored == 1 else 'answers wait'} to be stored.")
    hint = "Free some space, or make the folder writable. Nothing is lost: waiting answers are stored then."
    return failure(" ".join(said), hint)


async def streams_version(context: CheckContext) -> HealthResult | None:
    """streams.version: this version can read the streams on the bus."""
    found = await read_bus_format(context.bus) if context.bus is not None else None
    if found is None:
        return None
    format, version = found
    if format > BUS_FORMAT:
        return failure(
            f"The streams have bus version {format}, written by Trunkline {version!r}; this Trunkline "
            f"reads versions up to {BUS_FORMAT}.",
            "Update Trunkline on this machine.",
        )
    if format < BUS_FORMAT:
        return warning(
            f"The streams have bus version {format}; this Trunkline writes version {BUS_FORMAT}.",
            "Restart the platform (or the worker that manages the streams); it migrates them.",
        )
    return ok(f"The streams have bus version {format}")


async def streams_capacity(context: CheckContext) -> HealthResult | None:
    """streams.capacity: every stream uses less than 90 % of the size that `[retention]` allows."""
    if context.bus is None:
        return None
    stores = (CLAIM_STORE, RESULT_STORE, FILE_STORE)
    names = [*(spec.name for spec in STREAMS), *(store.stream_name for store in stores)]
    states = []
    for name in names:
        try:
            states.append(await stream_state(context.bus, name))
        except StreamUnavailable:
            return failure(
                f"The stream {name} is missing.",
                "Restart Trunkline: it creates the streams that are missing.",
            )
    refusing = [one for one in states if one.refuses and one.fullness > NEARLY_FULL]
    dropping = [one for one in states if not one.refuses and one.fullness > NEARLY_FULL]
    if refusing:
        return failure(
            f"{_fullness(refusing)}: once the limit is reached, new messages are refused.",
            "Raise the limit in [retention].",
        )
    if dropping:
        hint = "Raise the limit in [retention], unless you need no older messages."
        return warning(
            f"{_fullness(dropping)}: the oldest messages are deleted before their retention time ends.", hint
        )
    used, most = sum(one.bytes for one in states), sum(one.max_bytes or 0 for one in states)
    return ok(f"The streams hold {used // MEGABYTE} of at most {most // MEGABYTE} MB")


def _fullness(states: list[StreamState]) -> str:
    return ", ".join(
        f"{one.name} has {one.bytes // MEGABYTE} of {(one.max_bytes or 0) // MEGABYTE} MB" for one in states
    )


async def live_workers(context: CheckContext) -> list[WorkerHeartbeat]:
    """Return the heartbeats of the running workers."""
    assert context.bus is not None
    bucket = context.bus.kv(WORKER_BUCKET)
    try:
        entries = [await bucket.get(key) for key in await bucket.keys()]
    except BusError:
        return []
    return [entry.value for entry in entries if entry is not None and entry.value is not None]


def server_binary() -> Path | None:
    """Return the nats-server that would be started: beside this Python, or on the PATH."""
    beside = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("nats-server")
    return Path(found) if found else None
