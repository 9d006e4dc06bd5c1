"""Runs one channel and restarts it after a crash. Works for any channel."""

import logging
from functools import partial

import anyio

from trunkline.contracts.channels.channel import Channel
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.sentences.sentences import Sentences
from trunkline.errors import TrunklineError
from trunkline.plugins import OwnedItem, Plugins
from trunkline.workers.channels.preference_reader import PreferenceReader
from trunkline.workers.channels.routed_gateway import RoutedGateway
from trunkline_bus import Bus
from trunkline_bus.backoff import Backoff
from trunkline_bus.task_group import background_tasks

log = logging.getLogger(__name__)

LANGUAGE_SECONDS, LOOK_SECONDS = 1.0, 10.0
"""Seconds that a start waits at most for the language, and seconds between two looks whether it has changed."""

FIRST_PAUSE, LONGEST_PAUSE, CALM = 1.0, 60.0, 60.0
"""Seconds before a crashed channel is restarted: doubled each time, and reset after CALM seconds without a
crash."""


async def supervise_channel(
    owned: OwnedItem[Channel],
    plugins: Plugins,
    bus: Bus,
    sentences: Sentences,
    first_pause: float = FIRST_PAUSE,
) -> None:
    """Run the channel until it returns, and restart it after crashes. ``sentences`` follow the owner's language."""
    channel = owned.item
    channel.render = partial(plugins.render, channel=channel.name)
    async with background_tasks() as tasks:
        preferences = PreferenceReader(bus, channel.name, sentences)
        gateway = RoutedGateway(
            bus, channel.name, tasks, preferences, shows=channel.shows, sentences=sentences
        )
        with anyio.move_on_after(
            LANGUAGE_SECONDS
        ):  # what a former process began is continued in its language
            await preferences()
        tasks.start_soon(_follow_language, preferences)
        await _run_again(owned, plugins, gateway, first_pause)


async def _follow_language(preferences: PreferenceReader) -> None:
    while True:
        await anyio.sleep(LOOK_SECONDS)
        await preferences()


async def _run_again(
    owned: OwnedItem[Channel], plugins: Plugins, gateway: GatewayClient, first_pause: float
) -> None:
    channel = owned.item
    backoff = Backoff(first_pause, LONGEST_PAUSE)
    while True:
        started_at = anyio.current_time()
        try:
            with plugins.record_activity(owned.owner, "channel"):
                await channel.run(gateway)
        except BaseException as error:
            if isinstance(error, anyio.get_cancelled_exc_class()):
                raise
            if anyio.current_time() - started_at > CALM:
                backoff.reset()
            _log_crash(channel.name, error, backoff.delay)
        else:
            log.info("channel %s is done", channel.name)
            return
        await backoff.sleep()


def _log_crash(name: str, error: BaseException, pause: float) -> None:
    if isinstance(error, TrunklineError):
        log.error(
            "channel %s stopped: %s %s It starts again in %g s", name, error.sentence, error.hint, pause
        )
    else:
        log.error("channel %s crashed and starts again in %g s", name, pause, exc_info=error)
