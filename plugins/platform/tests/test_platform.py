"""The platform's tools in a platform that runs."""

from pathlib import Path

import anyio
import pytest

import trunkline
from trunkline.api.channel import Channel, Gateway
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE
from trunkline.contracts.turns.feed_messages import ToolEnded
from trunkline.testing.platform import platform

pytestmark = pytest.mark.anyio


class News(Channel):
    """A channel that can notify its owner."""

    name = "news"

    def __init__(self) -> None:
        self.reported: list[str] = []

    async def run(self, gateway: Gateway) -> None:
        await anyio.sleep_forever()

    async def tell_owner(self, text: str) -> None:
        self.reported.append(text)


class Mute(Channel):
    """A channel that cannot."""

    name = "mute"

    async def run(self, gateway: Gateway) -> None:
        await anyio.sleep_forever()


async def test_MB_F18_a_message_is_sent_through_a_channel_after_approval(tmp_path: Path) -> None:
    """The owner approves the shown message; the channel names the sender. An unknown channel, one that cannot send,
    and an invalid name are clear errors."""
    news = News()

    class Channels:
        @trunkline.hookimpl
        def trunkline_channels(self) -> list[Channel]:
            return [news, Mute()]

    config = {"permissions.approvals": "some", "channels.enabled": ("news", "mute")}
    async with platform(tmp_path, config=config, plugins=[Channels()]) as running:
        accepted = await running.send(
            '/tool send_channel_message channel=news content="The beans are up.\u001b[2J"'
        )
        with anyio.fail_after(60):
            while not (waiting := await running.gateway.waiting()):  # noqa: ASYNC110  asked over the bus
                await anyio.sleep(0.05)
        (asked,) = waiting
        assert (
            asked.detail.kind == "message"
            and "The beans are up." in asked.detail.text
            and news.reported == []
        )
        await running.gateway.decide(asked.turn, asked.call, asked.call_hash, allow=True)
        assert "Sent to the owner" in results((await running.answer(accepted)).events)[0]
        (reported,) = news.reported
        assert (
            reported.startswith("From the agent of block main:\nThe beans are up.") and "\x1b" not in reported
        )
    config["permissions.approvals"] = "none"
    async with platform(tmp_path, config=config, plugins=[Channels()]) as running:
        for name, why in (
            ("nobody", "No channel nobody"),
            ("mute", "can send its owner only answers"),
            ("a.>", "not the name of a channel"),
        ):
            ended = await running.say(f'/tool send_channel_message channel="{name}" content=x')
            assert why in results(ended.events)[0]


def results(events: tuple[object, ...]) -> list[str]:
    return [event.output for event in events if isinstance(event, ToolEnded)]


async def test_without_a_channel_the_owners_preferences_decide(tmp_path: Path) -> None:
    """The message is stored, and told once by the channel that the preferences name."""
    news, other = News(), News()
    other.name = "other"

    class Channels:
        @trunkline.hookimpl
        def trunkline_channels(self) -> list[Channel]:
            return [news, other]

    config = {"channels.enabled": ("terminal", "news", "other")}
    text = '[notices]\nchannels = ["other"]\n'
    async with platform(tmp_path) as running:
        await running.bus.call(
            MEMORY_WRITE, WriteMemory(path="preferences.toml", content=text, actor="owner")
        )
    async with platform(tmp_path, config=config, plugins=[Channels()]) as running:
        ended = await running.say('/tool send_channel_message content="The beans are up."')
        assert "preferences" in results(ended.events)[0]
        with anyio.fail_after(60):
            while not other.reported:  # noqa: ASYNC110  told by a task of the worker
                await anyio.sleep(0.02)
    assert other.reported == ["From the agent of block main:\nThe beans are up."] and news.reported == []


async def test_blocks_are_listed_with_their_descriptions(tmp_path: Path) -> None:
    """Each has its description, the asking one is marked; one with a broken file is listed too."""
    async with platform(tmp_path) as running:
        for name, text in (("garden", 'description = "Beds and\\n beans"'), ("broken", "= what")):
            path = f"blocks/{name}/block.toml"
            await running.bus.call(MEMORY_WRITE, WriteMemory(path=path, content=text, actor="owner"))
        ended = await running.say("/tool list_blocks")
        (reported,) = results(ended.events)
        assert "garden: Beds and beans" in reported and "main (you)" in reported
        assert "broken: its block.toml cannot be read" in reported
