"""The channels worker: runs each enabled channel in a separate task and restarts the channel after a crash.

``trunkline chat`` runs the channels that need a person's terminal. The worker's code names no particular channel.
"""

import logging
from collections.abc import Awaitable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio

from trunkline._util.text import printable
from trunkline.contracts.channels.channel import Channel
from trunkline.contracts.channels.channel_control import ControlChannel
from trunkline.contracts.channels.foreground_channel import ForegroundChannel
from trunkline.contracts.channels.owner_notice import OwnerNotice
from trunkline.contracts.channels.records_client import BusChannelRecords
from trunkline.contracts.channels.subjects import CONTROL_CHANNEL, TELL_OWNER
from trunkline.contracts.costs.budget_text import describe_budget_event
from trunkline.contracts.costs.client import watch_budget_events
from trunkline.contracts.costs.messages import BudgetEvent
from trunkline.contracts.costs.subjects import BUDGET_EVENT
from trunkline.contracts.gateway.messages import CommandSucceeded, TellOwner
from trunkline.contracts.sentences.catalogue import Sentence
from trunkline.contracts.sentences.sentences import Sentences
from trunkline.errors import ErrorCode, Unavailable
from trunkline.plugins import OwnedItem
from trunkline.runtime.worker import Worker, WorkerContext
from trunkline.workers.channels.channel_supervisor import FIRST_PAUSE, LONGEST_PAUSE, supervise_channel
from trunkline.workers.channels.channel_switch import ChannelSwitch
from trunkline.workers.channels.notice_outbox import NoticeOutbox
from trunkline.workers.channels.preference_reader import PreferenceReader
from trunkline.workers.channels.presence import Presence
from trunkline_bus import BusError, Refusal, Request
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

CATCH_UP = timedelta(hours=1)
"""How long ago a budget may have been used up of which a worker tells that starts now."""


class ChannelsWorker(Worker):
    """Runs channels. A crash of one does not affect the others; a channel that returns has ended."""

    kind = "channels"

    def __init__(self, context: WorkerContext, *, first_pause: float = FIRST_PAUSE) -> None:
        super().__init__(context)
        self._first_pause = first_pause
        self._channels: tuple[OwnedItem[Channel], ...] = ()
        self._outboxes: dict[str, NoticeOutbox] = {}
        self._sentences: dict[str, Sentences] = {}
        self._switches: dict[str, ChannelSwitch] = {}
        self._presences: list[Presence] = []
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
            say = self._sentences[owned.item.name] = self.context.plugins.sentences()
            outbox = self._outboxes[owned.item.name] = self._outbox(owned.item, say)
            tell = partial(_tell_owner, owned.item, outbox, say)
            await self.context.service.add(TELL_OWNER, tell, channel=owned.item.name)
            records = BusChannelRecords(self.context.bus, owned.item.name)
            self._presences.append(Presence(self.context.id, records, outbox))
            switch = self._switches[owned.item.name] = self._switch(owned.item)
            control = partial(_control, owned.item, switch, say)
            await self.context.service.add(CONTROL_CHANNEL, control, channel=owned.item.name)

    def _outbox(self, channel: Channel, sentences: Sentences) -> NoticeOutbox:
        bus, name = self.context.bus, channel.name
        preferences = PreferenceReader(bus, name, sentences)
        return NoticeOutbox(
            channel, BusChannelRecords(bus, name), partial(BusChannelRecords, bus), preferences, sentences
        )

    def _switch(self, channel: Channel) -> ChannelSwitch:
        return ChannelSwitch(BusChannelRecords(self.context.bus, channel.name))

    async def _run(self, channel: OwnedItem[Channel]) -> None:
        context, pause = self.context, self._first_pause
        sentences = self._sentences[channel.item.name]
        run = partial(supervise_channel, channel, context.plugins, context.bus, sentences, pause)
        await self._switches[channel.item.name].run(run)

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
                    for outbox in self._outboxes.values():
                        tasks.start_soon(outbox.run)
                    for presence in self._presences:
                        tasks.start_soon(presence.run)
                    for channel in self._channels:
                        tasks.start_soon(self._run, channel)
                    await anyio.sleep_forever()
        finally:
            self._ended.set()
        await anyio.sleep_forever()

    async def _tell_of_budgets(self) -> None:
        """Tell the owner when a budget is used up, also of those used up shortly before this worker started."""
        async with aclosing(watch_budget_events(self.context.bus)) as events:
            for event in await self._recent_budget_events():
                await self._put_budget(event)
            async for event in events:
                await self._put_budget(event)

    async def _recent_budget_events(self) -> list[BudgetEvent]:
        try:
            stored = [one.data async for one in self.context.bus.history(BUDGET_EVENT, after=0)]
        except BusError as error:
            log.warning("budgets that were used up before this start are not told: %s", error)
            return []
        return [event for event in stored if event.at > datetime.now(UTC) - CATCH_UP]

    async def _put_budget(self, event: BudgetEvent) -> None:
        if event.event != "bankrupt":
            return
        for name, outbox in self._outboxes.items():
            text = printable(describe_budget_event(event, self._sentences[name]))
            notice = OwnerNotice(id=f"budget:{event.id}", kind="budget", text=text, at=event.at)
            await _until_stored(outbox, notice)

    async def drain(self) -> None:
        """Tell the owner of the stop, stop the channels and wait for their end. Their messages are answered without
        them.
        """
        async with anyio.create_task_group() as tasks:
            for presence in self._presences:
                tasks.start_soon(presence.stop)
        self._running.cancel()
        await self._ended.wait()


async def _until_stored(outbox: NoticeOutbox, notice: OwnerNotice) -> None:
    backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
    while True:
        try:
            return await outbox.put(notice)
        except Unavailable as error:
            log.info("a notice waits for the bus: %s", error)
            await backoff.sleep()


async def _tell_owner(
    channel: Channel, outbox: NoticeOutbox, say: Sentences, request: Request[TellOwner]
) -> CommandSucceeded:
    """Deliver a message to the owner, at once or by the owner's preferences. The platform names an agent as the sender,
    so that no agent can pose as another or as an approval."""
    message = request.data
    is_agent = message.kind == "message"
    sentences = (Sentence("notice.message", {"block": message.block}),) if is_agent else message.sentences
    if message.notice:
        notice = OwnerNotice(
            id=f"{message.kind}:{message.notice}",
            kind=message.kind,
            text=message.text,
            sentences=sentences,
            at=message.at or datetime.now(UTC),
        )
        await _with_refusals(channel, outbox.put(notice))
    else:
        text = printable(f"{say.put(sentences)}\n{message.text}".strip())
        await _with_refusals(channel, channel.tell_owner(text))
    return CommandSucceeded()


async def _control(
    channel: Channel, switch: ChannelSwitch, say: Sentences, request: Request[ControlChannel]
) -> CommandSucceeded:
    match request.data.action:
        case "test":
            await _with_refusals(channel, channel.tell_owner(say("notice.test")))
        case "pause":
            await _with_refusals(channel, switch.pause())
        case "resume":
            await _with_refusals(channel, switch.resume())
    return CommandSucceeded()


async def _with_refusals(channel: Channel, act: Awaitable[None]) -> None:
    """Await what a channel does, and refuse the request if the channel cannot."""
    try:
        await act
    except Unavailable as unreachable:
        raise Refusal(ErrorCode.ENGINE_UNAVAILABLE, str(unreachable)) from unreachable
    except Exception as error:
        log.exception("channel %s could not send a notice to its owner", channel.name)
        sentence = f"The channel {channel.name} failed to send the message. Part of it may have arrived."
        raise Refusal(ErrorCode.INTERNAL, sentence) from error
