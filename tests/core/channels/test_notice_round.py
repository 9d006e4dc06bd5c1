"""The handing of notices to channels: one that is away holds up no other notice."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.buses import bus_at
from trunkline.config.settings import ChannelsSettings
from trunkline.contracts.channels.notice_client import NoticeRound
from trunkline.contracts.channels.subjects import TELL_OWNER
from trunkline.contracts.gateway.messages import CommandSucceeded, TellOwner
from trunkline.errors import ErrorCode
from trunkline_bus import Bus, Refusal, Request, service

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def serving(bus: Bus, channel: str, refused: str = "") -> AsyncIterator[list[str]]:
    """The ids of the notices that a channel takes. It refuses one."""
    taken: list[str] = []

    async def take(request: Request[TellOwner]) -> CommandSucceeded:
        if request.data.notice == refused:
            raise Refusal(ErrorCode.ENGINE_UNAVAILABLE, "The disk is full.")
        taken.append(request.data.notice)
        return CommandSucceeded()

    async with service(bus, name="channels", version="1") as channels:
        await channels.add(TELL_OWNER, take, channel=channel)
        yield taken


def notice(id: str) -> TellOwner:
    return TellOwner(block="main", text=id, notice=id)


async def test_a_channel_that_is_away_is_waited_for_once_in_a_round(tmp_path: Path) -> None:
    """The next round asks it again."""
    async with bus_at(tmp_path) as bus, serving(bus, "bell") as bell:
        first = NoticeRound(bus, ("away", "bell"))
        assert await first.hand(notice("one")) == ("away",)
        async with serving(bus, "away") as away:
            assert await first.hand(notice("two")) == ("away",) and away == []
            assert await NoticeRound(bus, ("away", "bell")).hand(notice("one")) == () and away == ["one"]
    assert bell == ["one", "two", "one"]


async def test_a_channel_that_refuses_a_notice_gets_the_next(tmp_path: Path) -> None:
    """It answers, so it is not away."""
    async with bus_at(tmp_path) as bus, serving(bus, "bell", refused="one") as bell:
        handing = NoticeRound(bus, ("bell",))
        assert await handing.hand(notice("one")) == ("bell",)
        assert await handing.hand(notice("two")) == ()
    assert bell == ["two"]


def test_no_notice_waits_for_the_terminal() -> None:
    """It is among the enabled channels, and nobody may sit at it."""
    assert ChannelsSettings().telling == ()
    assert ChannelsSettings(enabled=("terminal", "telegram", "email")).telling == ("telegram", "email")
