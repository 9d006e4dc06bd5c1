"""Files in rooms: what people send to an agent, and what an agent gives to them."""

from collections.abc import Iterator

import pytest

from trunkline.api.channel import Attachment
from trunkline.api.gateway import SendMessage
from trunkline.api.testing import ScriptedFault, ScriptedGateway, running_channel, wait_until
from trunkline.api.turn import TextDelta, ToolEnded, TurnEnded

from .homeserver import LIMIT, homeserver
from .running_channel import channel, talking

pytestmark = pytest.mark.anyio

PICTURE, PLAN = b"\x89PNG picture", b"%PDF plan"


async def test_files_of_a_message_reach_the_agent() -> None:
    """A picture with words, a document, and one of an old homeserver reach the agent in their order."""
    async with talking() as (server, gateway, _):
        server.media |= {"in0": ("image/png", PICTURE), "in1": ("application/pdf", PLAN)}
        server.say("what is this?", msgtype="m.image", filename="a.png", url="mxc://example.org/in0",
                   info={"mimetype": "image/png", "size": 12})  # fmt: skip
        await wait_until(lambda: len(gateway.sent) == 1)
        server.old_media = True
        server.say("plan.pdf", msgtype="m.file", url="mxc://example.org/in1")
        await wait_until(lambda: len(server.seen()) == 2)
    first, second = gateway.sent
    assert first.content == "what is this?" and second.content == ""
    files = [*first.documents, *second.documents]
    assert [(one.name, one.data) for one in files] == [("a.png", PICTURE), ("plan.pdf", PLAN)]


async def test_a_file_that_cannot_be_read_is_said() -> None:
    """A file that is too large, gone or encrypted gets a sentence and reaches no agent; a homeserver that is away is
    asked again."""
    async with talking() as (server, gateway, _):
        server.say("big.bin", msgtype="m.file", url="mxc://example.org/in0", info={"size": 30_000_000})
        server.say("gone.bin", msgtype="m.file", url="mxc://example.org/gone")
        server.say("secret.bin", msgtype="m.file", file={"url": "mxc://example.org/in0"})
        await wait_until(lambda: len(server.seen()) == 3)
        assert gateway.sent == []
        server.media["in1"] = ("application/pdf", PLAN)
        server.faults += [ScriptedFault("download", answer=(502, {})), ScriptedFault("download", lost=True)]
        server.say("plan.pdf", msgtype="m.file", url="mxc://example.org/in1")
        await wait_until(lambda: len(server.seen()) == 4)
    said = server.seen()
    assert "larger than 20 MB" in said[0] and "does not return this file" in said[1]
    assert "I cannot read this (file)" in said[2]
    assert [one.data for message in gateway.sent for one in message.documents] == [PLAN]


FILES = tuple(
    Attachment(path=f"a/{name}", name=name, media_type=media_type, size=size)
    for name, media_type, size in (
        ("chart.png", "image/png", 12), ("plan.pdf", "application/pdf", 9), ("film.mp4", "video/mp4", LIMIT + 1)
    )
)  # fmt: skip


def giving(message: SendMessage) -> Iterator[object]:
    """An answer with files."""
    yield TextDelta(step=0, offset=0, text="See here.")
    yield ToolEnded(step=0, call_id="c1", name="send_file", output="given", files=FILES)
    yield TurnEnded(reason="stop")


async def test_files_of_an_agent_are_shown_once() -> None:
    """A picture and a document are posts of their own behind the text, also when answers of the homeserver are lost;
    what the homeserver does not take is named."""
    async with ScriptedGateway(giving) as gateway, homeserver() as server:
        gateway.files |= {"a/chart.png": PICTURE, "a/plan.pdf": PLAN}
        async with running_channel(channel(server), gateway):
            await wait_until(lambda: server.calls.count("sync") >= 2)
            server.faults += [ScriptedFault(name, lost=True) for name in ("upload", "send", "file")]
            server.say("go")
            await wait_until(lambda: len(server.seen()) == 3)
        async with running_channel(channel(server), gateway):
            server.say("again")
            await wait_until(lambda: len(server.seen()) == 6)
        shown = server.shown()
        stored = [
            server.media[one.content["url"].rpartition("/")[2]] for one in shown if "url" in one.content
        ]
    assert [one.content["msgtype"] for one in shown] == ["m.text", "m.image", "m.file"] * 2
    assert shown[0].text.startswith("See here.") and "cannot send you the file film.mp4" in shown[0].text
    assert stored == [("image/png", PICTURE), ("application/pdf", PLAN)] * 2
    assert shown[1].text == "chart.png" and shown[1].content["info"]["mimetype"] == "image/png"


async def test_a_file_that_is_gone_is_named() -> None:
    """A file that is no longer stored is named in the answer, and the others are sent."""
    async with ScriptedGateway(giving) as gateway, homeserver() as server:
        gateway.files["a/plan.pdf"] = PLAN
        async with running_channel(channel(server), gateway):
            server.say("go")
            await wait_until(lambda: len(server.seen()) == 2 and "chart.png" in server.seen()[0])
        assert server.shown()[1].content["msgtype"] == "m.file"
