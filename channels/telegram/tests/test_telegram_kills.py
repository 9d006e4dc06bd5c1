"""The channel as a process of its own, killed between each pair of steps and at random: nothing is lost or repeated."""

import random
from collections.abc import AsyncIterator

import anyio
import pytest

from trunkline.api.testing import ChannelInstallation, ScriptedFault, wait_until
from trunkline.contracts.auth.client import AuthClient

from .bot_api_server import BotApiServer
from .installed_channel import installed

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

KILLS = 4
"""Random kills. ``python -m benchmarks.chaos --channel telegram`` makes more."""

Running = ChannelInstallation[BotApiServer]


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """The installation, which the tests of this module share."""
    async with installed(tmp_path_factory.mktemp("home")) as installation:
        yield installation


STEPS = [
    (method, when)
    for method in ("getMe", "setMyCommands", "getUpdates", "sendMessage", "editMessageText")
    for when in ("before", "after")
]


@pytest.mark.parametrize(("method", "when"), STEPS)
async def test_a_kill_between_two_steps_loses_and_repeats_nothing(
    running: Running, method: str, when: str
) -> None:
    """The process ends before Telegram acts, or after it acted and before the process knows."""
    installation, server = running, running.service
    word = f"{method}-{when}"
    if method in ("getMe", "setMyCommands"):
        installation.channels.kill()
    else:
        await installation.start()
    server.faults.append(ScriptedFault(method, **{when: installation.channels.kill}))  # type: ignore[arg-type]
    installation.ask(word)
    if not installation.channels.alive:
        installation.channels.launch()
    await wait_until(lambda: not server.faults)
    await installation.until_answered([word])
    with anyio.fail_after(30):
        await server.wait_for_confirmation()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_kill_while_a_code_is_answered_leaves_its_sender_linked(running: Running, when: str) -> None:
    """The code is used up and the process ends before or after its answer is sent: it is answered once."""
    installation, server = running, running.service
    await installation.start()
    user = {"before": 3003, "after": 3004}[when]
    auth = AuthClient(installation.platform.bus)
    started = await auth.start_linking("telegram")
    server.faults.append(ScriptedFault("sendMessage", **{when: installation.channels.kill}))  # type: ignore[arg-type]
    server.say(started.code, user=user)
    await wait_until(lambda: not server.faults)
    await installation.start()
    await wait_until(lambda: len(server.seen(user)) == 1)
    with anyio.fail_after(60):
        await server.wait_for_confirmation()
    server.say("say:served", user=user)
    await wait_until(lambda: len(server.seen(user)) == 2)
    assert "linked as the owner" in server.seen(user)[0]
    assert user in [int(one.sender) for one in await auth.senders("telegram")]
    await auth.unlink_sender("telegram", str(user))


async def test_random_kills_lose_and_repeat_nothing(running: Running) -> None:
    """Kills at any moment, in the middle of growing answers, while messages arrive."""
    installation, server = running, running.service
    words = await installation.kill_at_random(KILLS)
    server.repeat()
    await server.wait_for_confirmation()
    await installation.until_answered(words)


async def test_an_attached_chat_loses_and_repeats_nothing(running: Running) -> None:
    """What is said on another channel appears once in the chat, whenever the channels worker is killed."""
    installation, server = running, running.service
    await installation.start()
    accepted = await installation.platform.send("say:The beginning.")
    conversation = accepted.conversation
    await installation.platform.answer(accepted)
    server.say(f"/attach {conversation}")
    installation.asked += 1
    await wait_until(lambda: any(conversation in text or "now shows" in text for text in server.seen()))
    words: list[str] = []
    chance = random.Random(31)
    for number in range(KILLS):
        await installation.start()
        words += [f"elsewhere-{number}-{each}" for each in range(2)]
        for word in words[-2:]:
            installation.asked += 1
            await installation.platform.send(f"say:{word}. ;; slow:10:30", conversation=conversation)
        await anyio.sleep(chance.random() * 0.6)
        installation.channels.kill()
    await installation.until_answered(words)
    shown = [text for text in server.seen() if "elsewhere-" in text]
    assert all(text.startswith("You, in test: say:") for text in shown)
    assert [text.partition("say:")[2].partition(".")[0] for text in shown] == words
