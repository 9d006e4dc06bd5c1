"""Files that an agent gives to a person in Discord."""

from collections.abc import Iterator

import pytest

from trunkline.api.channel import Attachment
from trunkline.api.gateway import SendMessage
from trunkline.api.testing import ScriptedFault, ScriptedGateway, running_channel, wait_until
from trunkline.api.turn import TextDelta, ToolEnded, TurnEnded

from .discord_server import TOKEN, discord_server
from .test_discord import SEND, channel

pytestmark = pytest.mark.anyio

FILES = (
    Attachment(path="a/chart", name="chart.png", media_type="image/png", size=12),
    Attachment(path="a/gone", name="gone.pdf", media_type="application/pdf", size=9),
    Attachment(path="a/film", name="film.mp4", media_type="video/mp4", size=11 * 1024 * 1024),
)


def giving(message: SendMessage) -> Iterator[object]:
    """An answer with files."""
    yield TextDelta(step=0, offset=0, text="See here.")
    yield ToolEnded(step=0, call_id="c1", name="send_file", output="given", files=FILES)
    yield TurnEnded(reason="stop")


async def test_files_of_an_agent_are_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is a post of its own behind the text, also when Discord's answers are lost; one that is too large or
    gone is named in the text."""
    monkeypatch.setenv("DISCORD_BOT_TOKEN", TOKEN)
    async with ScriptedGateway(giving) as gateway, discord_server() as server:
        gateway.files["a/chart"] = b"\x89PNG picture"
        async with running_channel(channel(server), gateway):
            server.faults += [ScriptedFault(SEND, lost=True), ScriptedFault(SEND, lost=True)]
            server.say("go")
            await wait_until(lambda: len(server.shown()) == 2 and "gone.pdf" in server.seen()[0])
        async with running_channel(channel(server), gateway):
            server.say("again")
            await wait_until(lambda: len(server.shown()) == 4 and "gone.pdf" in server.seen()[2])
        shown = server.shown()
    assert [one.file for one in shown] == [None, ("chart.png", b"\x89PNG picture")] * 2
    assert "cannot send you the file film" in shown[0].text.replace("\\", "") and server.problems == []
