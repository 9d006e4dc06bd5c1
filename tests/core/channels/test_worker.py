"""The channels worker: channels apart from each other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

import trunkline
from trunkline.api.channel import Channel, ForegroundChannel, Gateway, TerminalSession
from trunkline.api.turn import FeedEvent
from trunkline.config import load_config
from trunkline.contracts.turns.feed_messages import ReasoningDelta
from trunkline.runtime.connection_settings import bus_settings
from trunkline.runtime.worker_host import WorkerHostSettings, run_worker
from trunkline.testing.channel_suite import wait_until
from trunkline.workers.channels.worker import ChannelsWorker
from trunkline_bus import EmbeddedServer

pytestmark = pytest.mark.anyio


class Doorbell(Channel):
    """Counts its starts; crashes as long as it is configured to."""

    def __init__(self, name: str = "doorbell", crashes: int = 0) -> None:
        self.name, self.crashes = name, crashes
        self.started = 0
        self.gateways: list[Gateway] = []
        self.running = False

    async def run(self, gateway: Gateway) -> None:
        self.started += 1
        self.gateways.append(gateway)
        if self.started <= self.crashes:
            raise RuntimeError("the wire is loose")
        self.running = True
        try:
            await anyio.sleep_forever()
        finally:
            self.running = False


class Brief(Doorbell):
    """Is done at once."""

    async def run(self, gateway: Gateway) -> None:
        self.started += 1


class ForegroundProbe(ForegroundChannel):
    """Sits at a terminal."""

    name = "desk"
    started = 0

    async def attend(self, gateway: Gateway, session: TerminalSession) -> int:
        self.started += 1
        return 0


class Plugin:
    """A plugin that offers channels and words reasoning."""

    def __init__(self, *channels: Channel) -> None:
        self._channels = channels

    @trunkline.hookimpl
    def trunkline_channels(self) -> list[Channel]:
        return list(self._channels)

    @trunkline.hookimpl
    def trunkline_render(self, event: FeedEvent, channel: str) -> str | None:
        return f"({channel} thinks)" if isinstance(event, ReasoningDelta) else None


@asynccontextmanager
async def running(home: Path, server: EmbeddedServer, *channels: Channel) -> AsyncIterator[anyio.Event]:
    """A channels worker with these channels enabled; drained when the event is set or the block is left."""
    enabled = [channel.name for channel in channels]
    config = load_config(home, flags={"channels.enabled": [*enabled, "missing"]}, environ={})
    bus = bus_settings(config, url=server.url, user=server.user, password=server.password)
    settings = WorkerHostSettings(config, bus, (Plugin(*channels),))
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        await tasks.start(partial(run_worker, ChannelsWorker, settings, stop))
        with anyio.fail_after(30):
            yield stop
        stop.set()


async def test_a_crashed_channel_does_not_affect_others(
    tmp_path: Path, nats_server: EmbeddedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged and started again, while the others never notice."""
    good, bad = Doorbell("good"), Doorbell("bad", crashes=1)
    async with running(tmp_path, nats_server, good, bad):
        await wait_until(lambda: bad.running)
        assert (good.started, bad.started) == (1, 2)
        assert good.running
    assert "channel bad crashed" in caplog.text and "the wire is loose" in caplog.text


async def test_a_channel_that_returned_is_not_restarted(tmp_path: Path, nats_server: EmbeddedServer) -> None:
    """A channel that returns is finished; the worker and the other channels continue."""
    brief, other = Brief("brief"), Doorbell("other", crashes=1)
    async with running(tmp_path, nats_server, brief, other):
        await wait_until(lambda: other.running)
        assert brief.started == 1


async def test_each_channel_uses_the_gateway_under_its_own_name(
    tmp_path: Path, nats_server: EmbeddedServer
) -> None:
    """Every channel has a gateway of its own, and its wording by plugins."""
    one, two = Doorbell("one"), Doorbell("two")
    async with running(tmp_path, nats_server, one, two):
        await wait_until(lambda: one.running and two.running)
        assert one.gateways[0] is not two.gateways[0]
        assert one.render is not None and two.render is not None
        thought = ReasoningDelta(step=0, offset=0, text="hm")
        assert (one.render(thought), two.render(thought)) == ("(one thinks)", "(two thinks)")


async def test_drain_ends_the_channels(tmp_path: Path, nats_server: EmbeddedServer) -> None:
    """A channel is cancelled and has let go before the worker closes."""
    bell = Doorbell()
    async with running(tmp_path, nats_server, bell) as stop:
        await wait_until(lambda: bell.running)
        stop.set()
        await wait_until(lambda: not bell.running)
    assert bell.started == 1


async def test_a_foreground_channel_is_left_to_chat(
    tmp_path: Path, nats_server: EmbeddedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker uses no terminal, and reports which enabled channel no plugin provides."""
    probe, bell = ForegroundProbe(), Doorbell()
    async with running(tmp_path, nats_server, probe, bell):
        await wait_until(lambda: bell.running)
    assert probe.started == 0
    assert "channel missing is enabled, but no plugin offers it" in caplog.text
