"""How a channel learns how the owner wants to be told."""

from pathlib import Path

import pytest

from tests.support.buses import bus_at
from trunkline.contracts.blocks.notice_preferences import (
    GetNoticePreferences,
    NoticePreferences,
    NoticePreferencesFound,
)
from trunkline.contracts.gateway.subjects import GET_NOTICE_PREFERENCES
from trunkline.contracts.sentences.sentences import Sentences
from trunkline.workers.channels.preference_reader import PreferenceReader
from trunkline_bus import Request, service

pytestmark = pytest.mark.anyio

WANTED = NoticePreferences(kinds={"online": ("bell",)})


async def test_preferences_are_not_guessed(tmp_path: Path) -> None:
    """Before the gateway has answered they are unknown."""

    async def answer(request: Request[GetNoticePreferences]) -> NoticePreferencesFound:
        return NoticePreferencesFound(preferences=WANTED)

    async with bus_at(tmp_path) as bus:
        read = PreferenceReader(bus, "bell", Sentences(), fresh=0.0, first=0.1)
        assert await read() is None
        async with service(bus, name="gateway", version="1") as gateway:
            await gateway.add(GET_NOTICE_PREFERENCES, answer, channel="bell")
            assert await read() == WANTED
