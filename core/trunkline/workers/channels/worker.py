"""The channels worker: runs each enabled channel in a separate task and restarts the channel after a crash.

``trunkline chat`` runs the channels that need a person's terminal. The worker's code names no particular channel.
"""

import logging
from contextlib import aclosing
from functools import partial

import anyio

from trunkline._util.text import printable
from trunkline.contracts.channels.channel import Channel
from trunkline.contracts.channels.foreground_channel import ForegroundChannel
from trunkline.contracts.channels.subjects import TELL_OWNER
from trunkline.contracts.costs.budget_text import describe_budget_event
from trunkline.contracts.costs.client import watch_budget_events
from trunkline.contracts.costs.messages import BudgetEvent
from trunkline.contracts.gateway.messages import CommandSucceeded, TellOwner
from trunkline.errors import ErrorCode, Unavailable
from trunkline.plugins import OwnedItem
from trunkline.runtime.worker import Worker, WorkerContext
from trunkline.workers.channels.channel_supervisor import FIRST_PAUSE, supervise_channel
from trunkline_bus import Refusal, Request

log = logging.getLogger(__name__)


class ChannelsWorker(Worker):
    """Runs channels. A crash of one does not affect the others; a channel that returns has ended."""

    kind = "channels"

    def __init__(self, context: WorkerContext, *, first_pause: float = FIRST_PAUSE) -> None:
        super().__init__(context)
        self._first_pause = first_pause
        self._channels: tuple[OwnedItem[Channel], ...] = ()
        self._running = anyio.CancelScope()
        self._ended = anyio.Event()

    async def open(self) -> None:
        """Select the enabled channels, and log those that cannot run."""
        enabled = self.context.config.settings.channels.enabled
        found = {owned.item.name: owned for owned in self.context.plugins.channels()}
        for name in enabled:
            if name not in found and name not in self._isolated_channels():
                log.warning(
                    "channel %s is enabled, but no plugin offers it; offered: %s", name, ", ".join(found)
                )
        selected = [found[name] for name in dict.fromkeys(enabled) if name in found]
        self._channels = tuple(owned for owned in selected if not isinstance(owned.item, ForegroundChannel))
        for owned in self._channels:
            tell = partial(_tell_owner, owned.item)
            await self.context.service.add(TELL_OWNER, tell, channel=owned.item.name)

    def _isolated_channels(self) -> set[str]:
        """Return the channels of isolated plugins."""
        config, report = self.context.config, self.context.plugins.report
        isolated = [state for state in report.plugins if state.status == "isolated"]
        return {
            name
            for state in isolated
            for name in config.plugin_host(state.name, state.owner).channels_of(state.name)
        }

    async def serve(self) -> None:
        """Run the channels until drained or cancelled; without channels, wait."""
        try:
            with self._running:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._tell_of_budgets)
                    for channel in self._channels:
                        tasks.start_soon(
                            supervise_channel,
                            channel,
                            self.context.plugins,
                            self.context.bus,
                            self._first_pause,
                        )
                    await anyio.sleep_forever()
        finally:
            self._ended.set()
        await anyio.sleep_forever()

    async def _tell_of_budgets(self) -> None:
        """Tell the owner on every channel when a budget is used up."""
        async with aclosing(watch_budget_events(self.context.bus)) as events:
            async for event in events:
                if event.event == "bankrupt":
                    for owned in self._channels:
                        await _tell_of_budget(owned.item, event)

    async def drain(self) -> None:
        """Stop the channels and wait for their end. Their messages are answered without them."""
        self._running.cancel()
        await self._ended.wait()


async def _tell_of_budget(channel: Channel, event: BudgetEvent) -> None:
    try:
        await channel.tell_owner(printable(describe_budget_event(event)))
    except Unavailable as unreachable:
        log.info("channel %s did not tell its owner of a budget: %s", channel.name, unreachable)
    except Exception:
        log.exception("channel %s could not tell its owner of a budget", channel.name)


async def _tell_owner(channel: Channel, request: Request[TellOwner]) -> CommandSucceeded:
    """Deliver a message of an agent to the owner. The platform names the sender, so that no agent can pose as
    another or as an approval."""
    try:
        await channel.tell_owner(
            printable(f"From the agent of block {request.data.block}:\n{request.data.text}")
        )
    except Unavailable as unreachable:
        raise Refusal(ErrorCode.ENGINE_UNAVAILABLE, str(unreachable)) from unreachable
    except Exception as error:
        log.exception("channel %s could not send a notice to its owner", channel.name)
        sentence = f"The channel {channel.name} failed to send the message. Part of it may have arrived."
        raise Refusal(ErrorCode.INTERNAL, sentence) from error
    return CommandSucceeded()
