"""MB-F22 with twenty viewers at once: everybody sees the same, and the first of two decisions counts for all."""

import re
from collections.abc import AsyncIterator

import anyio
import pytest

from trunkline.api.testing import wait_until
from trunkline.workers.gateway.socket.event_envelopes import ApprovalSettledEnvelope

from .viewers import WORD, Viewers, viewers

pytestmark = pytest.mark.anyio

WORDS = 40


@pytest.fixture(scope="module")
async def watched(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Viewers]:
    """The viewers, which the tests of this module share."""
    async with viewers(tmp_path_factory.mktemp("home")) as found:
        yield found


async def test_MB_F22_twenty_viewers_see_one_answer_without_a_gap(watched: Viewers) -> None:
    """Each of five kinds of viewers shows all words of an answer, in their order and once."""
    sent = await watched.running.send(f"slow:{WORDS}:20", conversation=watched.conversation)
    await watched.watch(sent.turn)
    assert len(watched.all) == 20
    await wait_until(lambda: all(len(one.at) == WORDS for one in watched.all), within=120)
    await watched.running.answer(sent)
    for one in watched.all:
        words = [int(word) for word in WORD.findall(one.shown)]
        assert words == [*range(1, WORDS + 1)], (one.kind, one.shown)


async def test_MB_T11_the_first_of_two_decisions_counts_for_all(watched: Viewers) -> None:
    """A call of a turn from Telegram is decided in Discord and over HTTP at once: one counts, and all are told."""
    bot, guild = watched.telegram, watched.discord
    for client in watched.sockets:
        client.received.clear()
    bot.say('call:write_file {"path": "f22.md", "content": "beans"}')
    await wait_until(
        lambda: any(one.buttons for one in bot.shown()) and any(one.buttons for one in guild.shown())
    )
    (waiting,) = (await watched.http.get("/api/approvals")).json()["approvals"]
    readers = await watched.watch(waiting["turn"])
    asked = [one for one in bot.shown() if one.buttons]
    asked_there = [one for one in guild.shown() if one.buttons]
    place = f"/api/turns/{waiting['turn']}/calls/{waiting['call']}/decision"
    statuses: list[int] = []

    async def allow() -> None:
        statuses.append(
            (await watched.http.post(place, json={"hash": waiting["hash"], "allow": True})).status_code
        )

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(allow)
        guild.say(f"deny {waiting['id']}")  # a press of a button must be answered within three seconds
    allowed = statuses[0] < 300
    assert statuses[0] < 300 or statuses[0] == 409, statuses
    word = "Allowed by" if allowed else "Denied by"
    for post in (*asked, *asked_there):
        await wait_until(lambda post=post: not post.buttons)  # type: ignore[misc]
        assert post.text.startswith(word)
    for client in watched.sockets:
        await wait_until(lambda client=client: _settled(client.received) == {allowed})  # type: ignore[misc]
    for reader in readers:
        await wait_until(lambda reader=reader: f'"allow":{str(allowed).lower()}' in reader.shown)  # type: ignore[misc]
    for screen in watched.of("terminal"):
        await wait_until(lambda screen=screen: re.search(word, screen.shown, re.IGNORECASE))  # type: ignore[misc]


def _settled(received: list[object]) -> set[bool]:
    return {one.payload.allow for one in received if isinstance(one, ApprovalSettledEnvelope)}
