"""``python -m benchmarks.sandboxes``: what it takes to run ``true`` shut in, beside the same program run in the open.

Wall-clock and CPU of the same rounds, in turn, so that what others do on the machine meets all alike. For Docker name
an image that has ``/bin/sh``, ``env`` and ``dd``: ``--image busybox:latest``.
"""

import argparse
import json
import os
import resource
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import perf_counter

import anyio

from benchmarks import machine
from benchmarks.figures import milliseconds, percentile, progress, table
from trunkline.contracts.sandbox.sandbox import Sandbox
from trunkline_sandbox.bubblewrap.backend import Bubblewrap
from trunkline_sandbox.docker.backend import Docker
from trunkline_sandbox.settings import SandboxSettings

PAUSE = 0.5
"""Seconds between two runs in a warm container: the next one has to be made meanwhile."""

Once = Callable[[], Awaitable[None]]


async def without_sandbox() -> None:
    """The same program without a sandbox."""
    await anyio.run_process(["true"], stdin=subprocess.DEVNULL)


@asynccontextmanager
async def serve_backend(sandbox: Sandbox) -> AsyncIterator[None]:
    """While the backend may keep places ready."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sandbox.serve)
        yield
        tasks.cancel_scope.cancel()


async def measure_all(
    rounds: int, ways: dict[str, Once], pauses: dict[str, float]
) -> dict[str, dict[str, float]]:
    """Each way once a round: wall-clock percentiles, and the CPU of ours and our children's, a run."""
    walls: dict[str, list[float]] = {name: [] for name in ways}
    cpus = dict.fromkeys(ways, 0.0)
    for number in range(-1, rounds):
        progress(f"round {number + 1} of {rounds}")
        for name, once in ways.items():
            await anyio.sleep(pauses.get(name, 0.0))
            cpu, began = _cpu(), perf_counter()
            await once()
            if number >= 0:  # the first one warms up
                walls[name].append(perf_counter() - began)
                cpus[name] += _cpu() - cpu
    progress("")
    return {
        name: {"p50": percentile(wall, 0.5), "p95": percentile(wall, 0.95), "cpu": cpus[name] / rounds}
        for name, wall in walls.items()
    }


async def run_parallel(once: Once, count: int) -> float:
    """Seconds until so many that are begun at the same time have ended."""
    began = perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(once)
    return perf_counter() - began


def _cpu() -> float:
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


async def _ways(
    image: str | None, folder: Path, stack: AsyncExitStack
) -> tuple[dict[str, Once], dict[str, float]]:
    """The ways there are here; says on standard error which are not."""
    workspace = folder / "workspace"
    workspace.mkdir()
    ways: dict[str, Once] = {"in the open": without_sandbox}
    pauses: dict[str, float] = {}
    backends: dict[str, Sandbox] = {"bubblewrap": Bubblewrap(SandboxSettings(), folder / "home")}
    if image is not None:
        for warm in (0, 1):
            name = "docker, warm" if warm else "docker"
            backends[name] = Docker(SandboxSettings(image=image, warm_containers=warm), folder / "home")
            pauses[name] = PAUSE * warm
    for name, backend in backends.items():
        if (reason := await backend.unavailable()) is not None:
            progress(f"{name}: {reason}\n")
            continue
        await stack.enter_async_context(serve_backend(backend))
        ways[name] = _once(backend, workspace)
    return ways, pauses


def _once(backend: Sandbox, workspace: Path) -> Once:
    async def once() -> None:
        done = await backend.run(("true",), workspace=workspace, env={})
        assert done.exit_code == 0, done

    return once


async def measure(rounds: int, parallel: int, image: str | None) -> dict[str, dict[str, float]]:
    """All figures in seconds, by way."""
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder:
        async with AsyncExitStack() as stack:
            ways, pauses = await _ways(image, Path(folder), stack)
            figures = await measure_all(rounds, ways, pauses)
            for name, once in ways.items():
                figures[name]["at_once"] = await run_parallel(once, parallel)
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sandboxes", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=50, help="runs of each (50)")
    parser.add_argument("--parallel", type=int, default=64, help="runs at the same time (64)")
    parser.add_argument("--image", help="measure Docker too, with this image")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, in seconds")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    options = {"use_uvloop": True}
    figures = anyio.run(measure, given.rounds, given.parallel, given.image, backend_options=options)
    if given.json:
        print(json.dumps({"load": load, "figures": figures}, indent=2))
        return
    head = ("`true`", "p50, ms", "p95, ms", "processor, ms", f"{given.parallel} at once, s")
    rows = [
        (name, *(milliseconds(one[key]) for key in ("p50", "p95", "cpu")), f"{one['at_once']:.2f}")
        for name, one in figures.items()
    ]
    print(f"{machine.describe_machine()}, load {load:.1f}\n\n{table(head, rows)}")


if __name__ == "__main__":
    main()
