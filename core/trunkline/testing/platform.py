"""A complete platform in this process, on a real embedded server, for tests of plugins and of the platform itself.

::

    async with platform(plugins=[my_plugin]) as running:
        answer = await running.say("/tool roll sides=6")
        assert answer.text == "4"
"""

import os
import tempfile
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import msgspec

from trunkline._util.private_folders import make_private
from trunkline.config import Config, load_config
from trunkline.contracts.blocks.paths import block_file_path
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.gateway.messages import MessageAccepted, SendMessage
from trunkline.contracts.turns.feed_messages import FeedEvent, TextDelta, TextReset, TurnEnded
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.home.paths import Home
from trunkline.runtime.supervisor import Instance, running_platform
from trunkline.workers import KINDS, load_worker
from trunkline_bus import Bus, connect

CHANNEL = "test"

DEFAULTS: Mapping[str, Any] = {
    "gateway.port": 0,
    "monitor.engine_port": 0,
    "channels.enabled": (),
    "permissions.approvals": "none",
    "monitor.discovery_threshold": 1_000,
}
"""The settings that differ from the defaults: any free port, no channels, no approvals, and models are shown all
tools that they may use.

A test of approvals sets ``config={"permissions.approvals": "some"}``, or writes the setting into ``block.toml``.
"""


UNSYNCED: Mapping[str, Any] = {"bus.sync_interval": 60.0}
"""What ``platform()`` also changes: the server does not wait for the disk with every message. Messages survive the kill
of any process nevertheless, and no test cuts the power.
"""


UNASKED: Mapping[str, str] = {"TRUNKLINE_PERMISSIONS__APPROVALS": "none"}
"""The same for a separate process, as an environment variable: its agents' calls run without approval."""


BLOCK = "main"
"""The block that tests use."""


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """The feed events that answer one message, in order."""

    accepted: MessageAccepted
    events: tuple[FeedEvent, ...]
    ended: TurnEnded

    @property
    def text(self) -> str:
        """The text that a reader of the feed sees at the end."""
        return text_of(self.events)


def text_of(events: Sequence[FeedEvent]) -> str:
    """Return the text that remains visible after these events: that of all steps, where a reset step begins again."""
    steps: dict[int, str] = {}
    for event in events:
        if isinstance(event, TextDelta):
            steps[event.step] = steps.get(event.step, "") + event.text
        elif isinstance(event, TextReset):
            steps[event.step] = ""
    return "".join(steps[step] for step in sorted(steps))


class PlatformClient:
    """Sends messages to a platform over its bus, as a channel does. ``timeout`` is in seconds."""

    def __init__(self, bus: Bus, *, timeout: float = 60.0) -> None:
        self.bus = bus
        self.gateway = GatewayClient(bus, CHANNEL)
        self.timeout = timeout

    async def send(self, text: str, **fields: Any) -> MessageAccepted:
        """Send a message; ``fields`` are further fields of ``SendMessage``."""
        return await self.gateway.send(SendMessage(content=text, **fields))

    async def answer(self, accepted: MessageAccepted) -> TurnAnswer:
        """Wait for the end of a turn and return all events of its feed. Raises TimeoutError."""
        events: list[FeedEvent] = []
        with anyio.fail_after(self.timeout):
            async for event in self.gateway.watch(accepted.conversation, accepted.turn):
                events.append(event)
        ended = events[-1]
        assert isinstance(ended, TurnEnded)
        return TurnAnswer(accepted, tuple(events), ended)

    async def say(self, text: str, **fields: Any) -> TurnAnswer:
        """Send a message and wait for its answer."""
        return await self.answer(await self.send(text, **fields))


class Platform(PlatformClient):
    """A platform that runs in this process. ``instance`` is the object that ``trunkline up`` uses too."""

    def __init__(self, bus: Bus, instance: Instance, *, timeout: float) -> None:
        super().__init__(bus, timeout=timeout)
        self.instance = instance

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.instance.config

    @property
    def home(self) -> Home:
        """The folders of the home."""
        return self.instance.home

    @property
    def url(self) -> str:
        """The gateway's HTTP address, such as ``http://127.0.0.1:40123``."""
        return self.instance.gateway

    @property
    def engine_url(self) -> str:
        """The HTTP address of the monitor's agent loop, which serves ``/engine/chat``."""
        from trunkline.workers.monitor.worker import MonitorWorker

        monitor = self.instance.workers["monitor"]
        assert isinstance(monitor, MonitorWorker)
        return monitor.engine_url

    @property
    def token(self) -> str:
        """The bearer token for the HTTP interface."""
        return self.home.token_file.read_text().strip()


@asynccontextmanager
async def platform(
    home: Path | None = None,
    *,
    plugins: Sequence[object] = (),
    config: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    workers: Sequence[WorkerKind] = KINDS,
    timeout: float = 60.0,
) -> AsyncIterator[Platform]:
    """Run workers on an embedded server within the context.

    Args:
        home: the home folder; by default a temporary folder that is removed at the end.
        plugins: plugin objects besides the installed plugins.
        config: settings by dotted key, in addition to ``DEFAULTS`` and ``UNSYNCED``.
        environ: the environment that the configuration is read from; by default this process's, without variables of
            Trunkline and of model providers.
        workers: the kinds of workers to run. The block ``main`` exists even without a gateway.
        timeout: how long ``say`` waits for the end of a turn, in seconds.
    """
    async with AsyncExitStack() as stack:
        if home is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-")))
        settings = load_config(
            home,
            flags={**DEFAULTS, **UNSYNCED, **(config or {})},
            environ=clean_environ() if environ is None else environ,
        )
        make_block(Home.of(settings).memory, workers)
        instance = await stack.enter_async_context(
            running_platform(settings, load_worker, kinds=tuple(workers), extra=tuple(plugins))
        )
        bus = await stack.enter_async_context(connect(msgspec.structs.replace(instance.bus, name="test")))
        yield Platform(bus, instance, timeout=timeout)


def clean_environ() -> dict[str, str]:
    """Return this process's environment without settings of Trunkline, and without keys and addresses of providers."""
    excluded = ("_API_KEY", "_BASE_URL", "_TOKEN", "_PROXY", "_proxy")
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TRUNKLINE_", "OTEL_", "OPENAI_")) and not name.endswith(excluded)
    }


def make_block(memory: Path, workers: Collection[str], block: str = BLOCK) -> None:
    """Create a block in the folder of a memory, unless the block exists or the workers include a gateway, which
    creates it. The block's file is empty.
    """
    file = memory / block_file_path(block)
    if "memory" in workers and "gateway" not in workers and not file.exists():
        make_private(file.parent)
        file.touch()
