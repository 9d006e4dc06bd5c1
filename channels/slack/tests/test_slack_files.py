"""Files that an agent gives to a person in Slack."""

from collections.abc import Iterator

import pytest

from trunkline.api.channel import Attachment
from trunkline.api.gateway import SendMessage
from trunkline.api.testing import ScriptedFault, ScriptedGateway, running_channel, wait_until
from trunkline.api.turn import TextDelta, ToolEnded, TurnEnded

from .slack_server import APP_TOKEN, BOT_TOKEN, slack_server
from .test_slack import channel

pytestmark = pytest.mark.anyio

FILES = (
    Attachment(path="a/chart", name="chart.png", media_type="image/png", size=12),
    Attachment(path="a/gone", name="gone.pdf", media_type="application/pdf", size=9),
    Attachment(path="a/film", name="film.mp4", media_type="video/mp4", size=200 * 1024 * 1024),
)


def giving(message: SendMessage) -> Iterator[object]:
    """An answer with files."""
    yield TextDelta(step=0, offset=0, text="See here.")
    yield ToolEnded(step=0, call_id="c1", name="send_file", output="given", files=FILES)
    yield TurnEnded(reason="stop")


async def test_files_of_an_agent_are_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is a post of its own behind the text, also when Slack's answers are lost; one that is too large or gone is
    named in the text."""
    monkeypatch.setenv("SLACK_BOT_TOKEN", BOT_TOKEN)
    monkeypatch.setenv("SLACK_APP_TOKEN", APP_TOKEN)
    async with ScriptedGateway(giving) as gateway, slack_server() as server:
        gateway.files["a/chart"] = b"\x89PNG picture"
        async with running_channel(channel(server), gateway):
            lost = ("files.getUploadURLExternal", "files.completeUploadExternal")
            server.faults += [ScriptedFault(name, lost=True) for name in lost]
            server.say("go")
            await wait_until(lambda: len(server.shown()) == 2 and "gone.pdf" in server.seen()[0])
        async with running_channel(channel(server), gateway):
            server.say("again")
            await wait_until(lambda: len(server.shown()) == 4 and "gone.pdf" in server.seen()[2])
        shown = server.shown()
    files = [one.extra["files"][0] for one in shown if "files" in one.extra]
    assert [one["title"] for one in files] == ["chart.png"] * 2 and files[0]["name"].startswith("chart-")
    assert all(server.files[one["id"]][1] == b"\x89PNG picture" for one in files)
    assert "cannot send you the file film.mp4" in shown[0].text and server.problems == []
