"""``python -m benchmarks.channels``: what the Telegram channel adds, at a scripted Bot API server on this machine.

* Messages a second: so many chats send one message each at once, through one bot; beside them as many messages to the
  gateway without a channel, in as many conversations.
* The time from an update to the first text in the chat, beside a bot of the bare library that answers at once, and
  beside the first text of a turn without a channel.
* The memory of the channel's process for each 1 000 chats.

The platform runs in this process, and the channel in a process of its own.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from time import perf_counter

import anyio
from telegram import Bot

from benchmarks import machine
from benchmarks.figures import milliseconds, progress, table
from channels.telegram.tests.bot_api_server import OWNER, TOKEN, BotApiServer, bot_api_server
from channels.telegram.tests.installed_channel import installed
from trunkline.api.testing import ChannelInstallation
from trunkline.contracts.turns.feed_messages import TextDelta

FIRST_CHAT = -100_000
TIMEOUT = 1_800.0

Installation = ChannelInstallation[BotApiServer]
Figures = Mapping[str, float]


async def measure(chats: int, updates: int) -> Figures:
    """Return the figures by name."""
    bare = await _bare_seconds(updates)
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder:
        async with installed(Path(folder)) as installation:
            await installation.start()
            await _talk(installation, range(1, 11))  # what is made once counts for no chat
            text = [await _first_text(installation) for _ in range(updates)]
            direct_text = [await _direct_first_text(installation) for _ in range(updates)]
            before = machine.resident_mib(installation.channels.pid)
            seconds = await _talk(installation, range(100, 100 + chats))
            grown = machine.resident_mib(installation.channels.pid) - before
            direct = await _direct(installation, chats)
    return {
        "per_second": chats / seconds,
        "direct_per_second": chats / direct,
        "share_of_direct": direct / seconds,
        "first_text": median(text),
        "bare_first_text": median(bare),
        "direct_first_text": median(direct_text),
        "mib_per_1000_chats": grown / chats * 1000,
    }


async def _until(true: Callable[[], object]) -> None:
    """Wait without the pauses of a test, which would be part of what is measured."""
    with anyio.fail_after(TIMEOUT):
        while not true():  # noqa: ASYNC110 - a state of a scripted service
            await anyio.sleep(0.001)


async def _talk(installation: Installation, chats: range) -> float:
    """One message from each chat at once; return the seconds until all are answered."""
    server, began = installation.service, perf_counter()
    for number in chats:
        server.say(f"@trunk_bot say:answer {number}", chat=FIRST_CHAT - number)
    answered = set[int]()
    with anyio.fail_after(TIMEOUT):
        while len(answered) < len(chats):
            texts = [(one.chat, one.text) for one in server.messages.values() if one.own]
            answered = {FIRST_CHAT - chat for chat, text in texts if text.startswith("answer")} & {*chats}
            progress(f"{len(answered)} of {len(chats)} chats are answered")
            await anyio.sleep(0.05)
    progress("")
    return perf_counter() - began


async def _direct(installation: Installation, messages: int) -> float:
    """The same without a channel."""
    began = perf_counter()
    async with anyio.create_task_group() as tasks:
        for number in range(messages):
            tasks.start_soon(installation.platform.say, f"say:answer {number}")
    return perf_counter() - began


async def _first_text(installation: Installation) -> float:
    server, before, began = installation.service, len(installation.service.shown(OWNER)), perf_counter()
    server.say("say:one")
    await _until(lambda: len(server.shown(OWNER)) > before)
    return perf_counter() - began


async def _direct_first_text(installation: Installation) -> float:
    began = perf_counter()
    sent = await installation.platform.send("say:one")
    async for event in installation.platform.gateway.watch(sent.conversation, sent.turn):
        if isinstance(event, TextDelta):
            break
    return perf_counter() - began


async def _bare_seconds(updates: int) -> list[float]:
    """The seconds from an update to its answer by a bot of the bare library, which echoes."""
    seconds: list[float] = []
    async with bot_api_server() as server, anyio.create_task_group() as tasks:
        bot = Bot(TOKEN, base_url=f"{server.url}/bot")
        tasks.start_soon(_echo, bot)
        for _ in range(updates):
            before, began = len(server.shown(OWNER)), perf_counter()
            server.say("one")
            await _until(lambda before=before: len(server.shown(OWNER)) > before)  # type: ignore[misc]
            seconds.append(perf_counter() - began)
        tasks.cancel_scope.cancel()
    return seconds


async def _echo(bot: Bot) -> None:
    async with bot:
        next_update = 0
        while True:
            for update in await bot.get_updates(offset=next_update, timeout=5):
                next_update = update.update_id + 1
                if update.message is not None:
                    await bot.send_message(update.message.chat_id, update.message.text or "")


def report(found: Figures, chats: int) -> str:
    """Return the figures as Markdown."""
    beside = f"{found['direct_per_second']:.1f} without a channel ({found['share_of_direct']:.0%})"
    text = milliseconds(found["direct_first_text"])
    rows = [
        (f"messages a second, {chats} chats at once", f"{found['per_second']:.1f}", beside),
        (
            "update to first text, median ms",
            milliseconds(found["first_text"]),
            f"{milliseconds(found['bare_first_text'])} the bare library; {text} a turn without a channel",
        ),
        ("memory for 1 000 chats, MiB", f"{found['mib_per_1000_chats']:.1f}", ""),
    ]
    return f"{machine.describe_machine()}\n\n{table(('what', 'measured', 'beside'), rows)}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.channels", description=__doc__.split("\n")[0])
    parser.add_argument("--chats", type=int, default=500, help="that send at once (500)")
    parser.add_argument("--updates", type=int, default=20, help="one after another, for the first text (20)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    chosen = parser.parse_args()
    found = anyio.run(measure, chosen.chats, chosen.updates)
    print(json.dumps(found) if chosen.json else report(found, chosen.chats))


if __name__ == "__main__":
    main()
