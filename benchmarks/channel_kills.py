"""``python -m benchmarks.chaos --channel NAME --kills N``: a channel's process killed at random while its owner writes.

The channel is a process of its own between a platform and the scripted service of the channel's tests. Before each kill
three messages arrive, whose answers grow for a while; the kill strikes at any moment within the next 0.6 seconds. After
every few kills all messages must be answered, each once and to its end, or the program exits with 1. ``--channel all``
kills each channel in turn.
"""

import argparse
import importlib
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import anyio

from benchmarks.figures import progress, table
from benchmarks.machine import describe_machine
from tests.support.fork_server import Forking
from trunkline.testing.channel_installation import ChannelInstallation, ChatService, KillResult

CHANNELS = ("telegram", "discord", "slack", "email", "matrix", "webhook")
ROUND = 20
"""Kills before all messages must be answered."""
ROUNDS = 3
"""Rounds with one home folder. Its conversation grows, and with it the time of an answer."""


@dataclass
class ChannelKills:
    """The outcome for one channel. ``evidence`` is the end of the channel's log after a round that broke a promise."""

    channel: str
    kills: int = 0
    messages: int = 0
    lost: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    evidence: str = ""

    @property
    def broken(self) -> bool:
        """Report whether a message was lost or repeated."""
        return bool(self.lost or self.repeated)

    def add(self, result: KillResult, log: str) -> None:
        """Add the result of a round."""
        self.kills += result.kills
        self.messages += result.messages
        self.lost += result.lost
        self.repeated += result.repeated
        if result.lost or result.repeated:
            self.evidence += f"{result}\n{log[-6000:]}\n"


def installed(channel: str, home: Path) -> AbstractAsyncContextManager[ChannelInstallation[ChatService]]:
    """Return the installation of a channel, as its tests define it."""
    module = importlib.import_module(f"channels.{channel}.tests.installed_channel")
    installation: AbstractAsyncContextManager[ChannelInstallation[ChatService]] = module.installed(home)
    return installation


async def kill_channel(channel: str, kills: int, seed: int, seconds: float) -> ChannelKills:
    """Kill a channel so often, or until the time is over; end after the first round that broke a promise."""
    outcome, end = ChannelKills(channel), monotonic() + seconds
    while outcome.kills < kills and monotonic() < end and not outcome.broken:
        with tempfile.TemporaryDirectory(prefix="trunkline-") as folder:
            async with installed(channel, Path(folder)) as installation:
                for size in _rounds(kills - outcome.kills):
                    words = await installation.strike(
                        size, seed=seed + outcome.kills, prefix=f"kill{outcome.kills}"
                    )
                    result = await installation.result(size, words)
                    outcome.add(result, installation.channels.text())
                    progress(
                        f"{channel}: {outcome.kills} kills, {len(outcome.lost)} lost, {len(outcome.repeated)} repeated"
                    )
                    if outcome.broken or monotonic() > end:
                        break
    return outcome


def _rounds(kills: int) -> Iterator[int]:
    for _ in range(ROUNDS):
        if kills > 0:
            yield min(kills, ROUND)
        kills -= ROUND


def main() -> None:
    """Kill and print; exits with 1 when a message was lost or repeated."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__.split("\n")[0])
    parser.add_argument("--channel", choices=(*CHANNELS, "all"), required=True)
    parser.add_argument("--kills", type=int, default=100, help="of each channel (100)")
    parser.add_argument("--seed", type=int, help="of the moments; drawn and printed by default")
    parser.add_argument("--seconds", type=float, default=7_200, help="kill each channel no longer than this")
    order = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if order.seed is None else order.seed
    names = CHANNELS if order.channel == "all" else (order.channel,)
    with Forking().installed():  # a start by fork is half a second faster, so more kills fit into an hour
        outcomes = [anyio.run(kill_channel, name, order.kills, seed, order.seconds) for name in names]
    progress("")
    print(f"{describe_machine()}; seed {seed}")
    rows = [(one.channel, one.kills, one.messages, len(one.lost), len(one.repeated)) for one in outcomes]
    print(table(("channel", "kills", "messages", "lost", "repeated"), rows))
    if any(one.broken for one in outcomes):
        print("".join(one.evidence for one in outcomes))
        sys.exit(1)
