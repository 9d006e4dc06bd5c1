"""The ways to ask the scripted model: directly, and through Trunkline in one process or in one a worker.

Each way gives a client with ``ask(program)``: seconds to the first text, and seconds to the end.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import anyio
import httpx

from trunkline.config.edit import write_settings
from trunkline.testing.platform import clean_environ
from trunkline.testing.processes import process_platform

READY = re.compile(r"Trunkline is ready at (\S+)")
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None)


@dataclass(frozen=True, slots=True)
class Asked:
    """Seconds to the first text and to the end."""

    first: float
    whole: float


class Way:
    """A client of one way. ``pids`` are the processes whose memory belongs to it, by name."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        path: str,
        body: Callable[[str], dict[str, object]],
        mark: bytes,
        end: bytes,
    ) -> None:
        self._client = client
        self._path = path
        self._body = body
        self._mark = mark
        self._end = end
        self.pids: Mapping[str, int] = {}

    async def ask(self, program: str) -> Asked:
        """One turn. Raises RuntimeError when it does not come to its end."""
        began = perf_counter()
        first = 0.0
        seen = b""
        async with self._client.stream("POST", self._path, json=self._body(program)) as response:
            response.raise_for_status()
            async for chunk in response.aiter_raw():
                seen = seen[-4096:] + chunk
                if not first and self._mark in seen:
                    first = perf_counter() - began
        if self._end not in seen:
            raise RuntimeError(f"no end: {seen[-300:]!r}")
        return Asked(first, perf_counter() - began)


@asynccontextmanager
async def direct(provider: str) -> AsyncIterator[Way]:
    """Straight to the model."""

    def body(program: str) -> dict[str, object]:
        return {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": program}]}

    async with httpx.AsyncClient(base_url=provider, timeout=120, limits=LIMITS) as client:
        yield Way(client, "/chat/completions", body, b'"content"', b"[DONE]")


@asynccontextmanager
async def one_process(provider: str) -> AsyncIterator[Way]:
    """Through ``trunkline up``."""
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-bench-")))
        write_settings(home / "trunkline.toml", settings(provider))
        process = stack.enter_context(started(home))
        address = await anyio.to_thread.run_sync(ready, process)
        way = await stack.enter_async_context(gateway(address, (home / "token").read_text().strip()))
        way.pids = {"all workers": process.pid}
        yield way
        process.terminate()
        await anyio.to_thread.run_sync(process.wait)


@asynccontextmanager
async def many_processes(provider: str) -> AsyncIterator[Way]:
    """Through one process a worker."""
    kinds = ("gateway", "monitor", "tools", "memory")
    async with (
        process_platform(config=settings(provider), workers=kinds) as running,
        gateway(running.url, running.token) as way,
    ):
        pids = {name: process.pid for name, process in running.processes.items()}
        way.pids = {"nats-server": running.server.pid, **pids}
        yield way


def settings(provider: str) -> dict[str, object]:
    """The same for both ways."""
    return {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
        "gateway.port": 0,
        "monitor.engine_port": 0,
        "channels.enabled": [],
        "telemetry.log_level": "warning",
    }


def started(home: Path) -> "subprocess.Popen[str]":
    """``trunkline up`` on this home, by nobody else's settings."""
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "trunkline.cli.main", "up", "--log", "json"]
    log = (home / "up.log").open("w")
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=log, text=True)


def ready(process: "subprocess.Popen[str]") -> str:
    """Wait for the line that says where it is ready. Raises RuntimeError when it ends without one."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := READY.search(line):
            return found[1]
    raise RuntimeError(f"trunkline up ended with status {process.wait()}")


@asynccontextmanager
async def gateway(address: str, token: str) -> AsyncIterator[Way]:
    """A client of the Gateway API; every question begins a conversation."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=120, limits=LIMITS) as client:
        body: Callable[[str], dict[str, object]] = lambda program: {"content": program}  # noqa: E731
        yield Way(client, "/conversations/messages", body, b"event: text-delta", b"event: done")


def resident(pid: int) -> float:
    """MiB resident in the process."""
    import psutil

    return float(psutil.Process(pid).memory_info().rss) / 2**20


def cores() -> int:
    """How many cores this run may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
