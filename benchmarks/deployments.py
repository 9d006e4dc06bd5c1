"""The ways to ask the scripted model: directly, and through Trunkline in one process or in one a worker.

All are asked by the same client in the same protocol, OpenAI's chat completions as a stream over httpx, so that
what differs is what stands between. A conversation is continued as each way has it: directly by sending all of it
again, through Trunkline by naming it.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import anyio
import httpx

from tests.support.processes import process_platform
from trunkline.config.editor import write_settings
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.testing.platform import clean_environ
from trunkline_bus import Bus

READY = re.compile(r"Trunkline is ready at (\S+)")
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None)
TEXT, END = re.compile(rb'"content": ?"[^"]'), b"[DONE]"
"""The first word of an answer, and its end, in either server's writing."""

NOTHING: Mapping[str, object] = {}
KINDS: tuple[WorkerKind, ...] = ("gateway", "monitor", "tools", "memory")


@dataclass(frozen=True, slots=True)
class TurnTiming:
    """Seconds to the first text and to the end."""

    first: float
    whole: float


class Conversation:
    """What a client knows of one conversation: its messages, and its name where there is one."""

    def __init__(self) -> None:
        self.messages: list[dict[str, str]] = []
        self.name = ""


class Deployment:
    """A client of one way. ``pids`` are the processes that belong to it, ``bus`` a connection to its server."""

    def __init__(self, client: httpx.AsyncClient, model: str) -> None:
        self._client = client
        self._model = model
        self.pids: Mapping[str, int] = {}
        self.bus: Bus | None = None

    async def ask(self, program: str, conversation: Conversation) -> TurnTiming:
        """One turn. Raises RuntimeError when it does not come to its end."""
        said = {"role": "user", "content": program}
        messages = [said] if conversation.name else [*conversation.messages, said]
        body = {"model": self._model, "stream": True, "messages": messages}
        headers = {"x-conversation-id": conversation.name} if conversation.name else {}
        began, first, seen = perf_counter(), 0.0, b""
        async with self._client.stream("POST", "/chat/completions", json=body, headers=headers) as response:
            response.raise_for_status()
            async for chunk in response.aiter_raw():
                seen += chunk
                if not first and TEXT.search(seen):
                    first = perf_counter() - began
        whole = perf_counter() - began
        if END not in seen or not first:
            raise RuntimeError(f"no end: {seen[-300:]!r}")
        conversation.name = response.headers.get("x-conversation-id", "")
        conversation.messages += [said, {"role": "assistant", "content": _text(seen)}]
        return TurnTiming(first, whole)


def _text(stream: bytes) -> str:
    """The words of a streamed answer."""
    events = (line[6:] for line in stream.split(b"\n") if line.startswith(b"data: {"))
    choices = (json.loads(event)["choices"] for event in events)
    return "".join(choice[0]["delta"].get("content") or "" for choice in choices if choice)


@asynccontextmanager
async def direct_client(provider: str) -> AsyncIterator[Deployment]:
    """Straight to the model."""
    async with httpx.AsyncClient(base_url=provider, timeout=120, limits=LIMITS) as client:
        yield Deployment(client, "scripted")


@asynccontextmanager
async def one_process(provider: str, more: Mapping[str, object] = NOTHING) -> AsyncIterator[Deployment]:
    """Through ``trunkline up``."""
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-bench-")))
        write_settings(home / "trunkline.toml", {**settings(provider), **more})
        process = start_trunkline(home)
        stack.callback(process.wait)
        stack.callback(process.terminate)
        address = await anyio.to_thread.run_sync(wait_until_ready, process)
        way = await stack.enter_async_context(gateway_client(address, (home / "token").read_text().strip()))
        server = int((home / "bus" / "server.pid").read_text())
        way.pids = {"all workers": process.pid, "nats-server": server}
        yield way


@asynccontextmanager
async def many_processes(provider: str, more: Mapping[str, object] = NOTHING) -> AsyncIterator[Deployment]:
    """Through one process a worker."""
    async with (
        process_platform(config={**settings(provider), **more}, workers=KINDS) as running,
        gateway_client(running.url, running.token) as way,
    ):
        way.pids = {name: process.pid for name, process in running.processes.items()}
        way.pids = {**way.pids, "nats-server": running.server.pid}
        way.bus = running.bus
        yield way


Enter = Callable[[str], AbstractAsyncContextManager[Deployment]]
DEPLOYMENTS: dict[str, Enter] = {
    "direct": direct_client,
    "one process": one_process,
    "process per worker": many_processes,
}


def settings(provider: str) -> dict[str, object]:
    """The same for all ways through Trunkline."""
    return {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
        "gateway.port": 0,
        "monitor.engine_port": 0,
        "channels.enabled": [],
        "telemetry.log_level": "warning",
    }


def start_trunkline(home: Path) -> "subprocess.Popen[str]":
    """``trunkline up`` on this home, by nobody else's settings."""
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "trunkline.cli.main", "up", "--log", "json"]
    with (home / "up.log").open("w") as log:
        return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=log, text=True)


def wait_until_ready(process: "subprocess.Popen[str]") -> str:
    """Wait for the line that says where it is ready. Raises RuntimeError when it ends without one."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := READY.search(line):
            return found[1]
    raise RuntimeError(f"trunkline up ended with status {process.wait()}")


@asynccontextmanager
async def gateway_client(address: str, token: str) -> AsyncIterator[Deployment]:
    """A client of the gateway's OpenAI surface."""
    headers = {"Authorization": f"Bearer {token}"}
    base = f"{address}/v1"
    async with httpx.AsyncClient(base_url=base, headers=headers, timeout=120, limits=LIMITS) as client:
        yield Deployment(client, "main")
