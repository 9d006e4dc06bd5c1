"""``python -m benchmarks.fan_out``: how late twenty viewers of one turn see each word of its answer.

Five viewers over SSE, five over WebSocket, three terminals (``trunkline attach``), four chats of Telegram and three of
Discord, at scripted services. Each worker and each terminal is a process. A word is late by the time from the moment
when a bare subscriber of the bus in this process has it, until a viewer shows it. Chats are edited as often as the
settings permit (every 0.02 s); by default they are edited every 1.5 s, because the services permit no more.
"""

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

import anyio

from benchmarks import machine
from benchmarks.figures import milliseconds, percentile, progress, table
from tests.integration.viewers import EDIT_SECONDS, WORD, Viewers, viewers
from trunkline.api.testing import wait_until
from trunkline.contracts.turns.feed_messages import FeedItem, TextDelta
from trunkline.contracts.turns.subjects import FEED
from trunkline_bus import ReceivedMessage

AIM = 0.1
"""Seconds by which 95 of 100 words may be late at most (issue 15)."""

WORD_MILLISECONDS = 30

Lateness = Mapping[str, list[float]]


async def measure(words: int, turns: int) -> Lateness:
    """Return the seconds by which words were late, by the kind of viewer."""
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder:
        async with viewers(Path(folder)) as watched:
            late: dict[str, list[float]] = defaultdict(list)
            for number in range(turns):
                progress(f"turn {number + 1} of {turns}")
                for kind, seconds in (await _turn(watched, words)).items():
                    late[kind] += seconds
            progress("")
            return late


async def _turn(watched: Viewers, words: int) -> Lateness:
    """One turn. Words that were published before the viewers over SSE had connected count for the others only."""
    published: dict[int, float] = {}

    async def note(received: ReceivedMessage[FeedItem]) -> None:
        if isinstance(event := received.data.event, TextDelta):
            for found in WORD.finditer(event.text):
                published.setdefault(int(found[1]), perf_counter())

    subscription = await watched.running.bus.subscribe(FEED, note, limit=1)
    for one in watched.all:
        one.at.clear()
    sent = await watched.running.send(f"slow:{words}:{WORD_MILLISECONDS}", conversation=watched.conversation)
    await watched.watch(sent.turn)
    await wait_until(lambda: all(one.begun for one in watched.of("SSE")))
    since = perf_counter()
    await wait_until(lambda: all(len(one.at) == words for one in watched.all), within=300)
    await watched.running.answer(sent)
    await wait_until(lambda: len(published) == words)
    await subscription.aclose()
    late: dict[str, list[float]] = defaultdict(list)
    for one in watched.all:
        counted = (word for word, at in published.items() if one.kind != "SSE" or at > since)
        late[one.kind] += [one.at[word] - published[word] for word in counted]
    return late


def report(late: Lateness) -> str:
    """Return the figures as Markdown."""
    everything = {**late, "all": [one for seconds in late.values() for one in seconds]}
    rows = [
        (kind, len(seconds), *(milliseconds(percentile(seconds, share)) for share in (0.5, 0.95, 0.99)))
        for kind, seconds in everything.items()
        if seconds
    ]
    verdict = "met" if percentile(everything["all"], 0.95) <= AIM else "missed"
    return (
        f"{machine.describe_machine()}; edits every {EDIT_SECONDS:g} s\n\n"
        f"{table(('viewers', 'words', 'late by, ms: p50', 'p95', 'p99'), rows)}\n\n"
        f"95 of 100 words late by {milliseconds(AIM)} ms at most: {verdict}."
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fan_out", description=__doc__.split("\n")[0])
    parser.add_argument("--words", type=int, default=100, help="of an answer (100)")
    parser.add_argument("--turns", type=int, default=3, help="how many turns (3)")
    parser.add_argument("--json", action="store_true", help="print the seconds as JSON")
    chosen = parser.parse_args()
    found = anyio.run(measure, chosen.words, chosen.turns)
    print(json.dumps(found) if chosen.json else report(found))


if __name__ == "__main__":
    main()
