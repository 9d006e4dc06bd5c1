"""The channel as a process of its own, killed while files are fetched and sent: none is lost or shown twice."""

import random
from collections.abc import AsyncIterator

import anyio
import pytest

from trunkline.api.testing import ChannelInstallation, ScriptedFault, wait_until

from .bot_api_server import BotApiServer
from .installed_channel import installed

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

KILLS = 4
"""Random kills. ``python -m benchmarks.chaos --channel telegram`` makes more."""

PICTURE = b"\x89PNG\r\n\x1a\n a picture"

Running = ChannelInstallation[BotApiServer]


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """The installation, which the tests of this module share, with a picture and a table in the workspace."""
    async with installed(tmp_path_factory.mktemp("home")) as installation:
        workspace = installation.platform.home.workspace("main")
        workspace.mkdir(parents=True, exist_ok=True)
        for name in ("plan.png", "plan.csv"):
            (workspace / name).write_bytes(PICTURE)
        yield installation


def asked_for(word: str, name: str) -> str:
    """A message whose answer is a growing text with this word, and then a file."""
    return f'call:send_file {{"path": "{name}"}} ;; say:{word}. ;; slow:10:30'


async def until_shown(running: Running, words: list[str], files: int) -> None:
    """Wait until each word is in an answer and so many files are shown, and every message is confirmed."""
    installation, server = running, running.service
    with anyio.move_on_after(90 + len(words)):
        while len(_files(server)) < files or not all(_answers(server, word) for word in words):
            await installation.start()
            await anyio.sleep(0.05)
    await server.wait_for_confirmation()
    assert [len(_answers(server, word)) for word in words] == [1] * len(words)
    assert len(_files(server)) == files, installation.channels.text()[-3000:]


def _answers(server: BotApiServer, word: str) -> list[str]:
    return [text for text in server.seen() if f"{word}." in text and "word-10" in text]


def _files(server: BotApiServer) -> list[str]:
    return [one.file for one in server.shown() if one.file]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("name", "method"), [("plan.png", "sendPhoto"), ("plan.csv", "sendDocument")])
async def test_a_kill_while_a_file_is_sent_sends_it_once(
    running: Running, name: str, method: str, when: str
) -> None:
    """The file of an answer arrives once, whether the process ends before or after Telegram has it."""
    installation, server = running, running.service
    await installation.start()
    before = len(_files(server))
    server.faults.append(ScriptedFault(method, **{when: installation.channels.kill}))  # type: ignore[arg-type]
    server.say(asked_for(f"{method}-{when}", name))
    await wait_until(lambda: not server.faults)
    await until_shown(running, [f"{method}-{when}"], before + 1)


@pytest.mark.parametrize("method", ["getFile", "download"])
async def test_a_kill_while_a_picture_is_fetched_loses_nothing(running: Running, method: str) -> None:
    """The picture is fetched again, and its question is answered once."""
    installation, server = running, running.service
    await installation.start()
    before = len(_files(server))
    server.faults.append(ScriptedFault(method, before=installation.channels.kill))
    server.send_photo(PICTURE, caption=f"say:fetched-{method}. ;; slow:10:30")
    await wait_until(lambda: not server.faults)
    await until_shown(running, [f"fetched-{method}"], before)


async def test_random_kills_lose_and_repeat_no_file(running: Running) -> None:
    """Kills at any moment, while files arrive and are sent."""
    installation, server = running, running.service
    chance, words, before = random.Random(88), list[str](), len(_files(server))
    for number in range(KILLS):
        await installation.start()
        words += [f"received-{number}", f"given-{number}"]
        server.send_photo(PICTURE, caption=f"say:{words[-2]}. ;; slow:10:30")
        server.say(asked_for(words[-1], "plan.csv"))
        await anyio.sleep(chance.random() * 0.6)
        installation.channels.kill()
    await until_shown(running, words, before + KILLS)
