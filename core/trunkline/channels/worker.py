"""The channels worker: runs each enabled channel by itself and starts it again when it crashes.

A channel that sits at a person's terminal is left to ``trunkline chat``. No channel's own work may be in here.
"""

import logging
from functools import partial

import anyio

from trunkline.abc.channels import Channel
from trunkline.abc.foreground import ForegroundChannel
from trunkline.errors import TrunklineError
from trunkline.runtime.gateway_client import GatewayClient
from trunkline.runtime.worker import Worker, WorkerContext

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE, CALM = 1.0, 60.0, 60.0
"""Seconds before a crashed channel starts again: doubled each time, and the first again after a calm time."""


class ChannelsWorker(Worker):
    """Runs channels. One that crashes hurts no other; one that returns is done."""

    kind = "channels"

    def __init__(self, context: WorkerContext, *, first_pause: float = FIRST_PAUSE) -> None:
        super().__init__(context)
        self._first_pause = first_pause
        self._channels: tuple[Channel, ...] = ()
        self._owners: dict[str, str] = {}
        self._running = anyio.CancelScope()
        self._ended = anyio.Event()

    async def open(self) -> None:
        """Pick the channels that are enabled, and say which cannot be run."""
        enabled = self.context.config.settings.channels.enabled
        offered = self.context.plugins.channels()
        found = {owned.item.name: owned.item for owned in offered}
        self._owners = {owned.item.name: owned.owner for owned in offered}
        for name in enabled:
            if name not in found:
                log.warning(
                    "channel %s is enabled, but no plugin offers it; offered: %s", name, ", ".join(found)
                )
        wanted = [found[name] for name in dict.fromkeys(enabled) if name in found]
        self._channels = tuple(channel for channel in wanted if not isinstance(channel, ForegroundChannel))

    async def serve(self) -> None:
        """Run the channels until drained or cancelled; a worker without any waits."""
        try:
            with self._running:
                async with anyio.create_task_group() as tasks:
                    for channel in self._channels:
                        tasks.start_soon(self._keep, channel)
                    await anyio.sleep_forever()
        finally:
            self._ended.set()
        await anyio.sleep_forever()

    async def drain(self) -> None:
        """End the channels and wait until they have. What they handed in is answered without them."""
        self._running.cancel()
        await self._ended.wait()

    async def _keep(self, channel: Channel) -> None:
        channel.render = partial(self.context.plugins.render, channel=channel.name)
        gateway = GatewayClient(self.context.bus, channel.name)
        pause = self._first_pause
        while True:
            born = anyio.current_time()
            try:
                with self.context.plugins.at_work(self._owners[channel.name], "channel"):
                    await channel.run(gateway)
            except BaseException as error:
                if isinstance(error, anyio.get_cancelled_exc_class()):
                    raise
                pause = self._first_pause if anyio.current_time() - born > CALM else pause
                _log_crash(channel.name, error, pause)
            else:
                log.info("channel %s is done", channel.name)
                return
            await anyio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


def _log_crash(name: str, error: BaseException, pause: float) -> None:
    if isinstance(error, TrunklineError):
        log.error(
            "channel %s stopped: %s %s It starts again in %g s", name, error.sentence, error.hint, pause
        )
    else:
        log.error("channel %s crashed and starts again in %g s", name, pause, exc_info=error)
