"""The page stays open while the gateway and the monitor are killed in the middle of an answer, and loses nothing."""

import re

import pytest
from playwright.async_api import Browser, expect

from tests.ports import free_port
from tests.support.processes import process_platform
from trunkline.testing.scripted_provider import ScriptedProvider

from .conftest import visit
from .test_chat import send

pytestmark = [pytest.mark.anyio, pytest.mark.kill]


async def test_an_answer_goes_on_after_kills(browser: Browser) -> None:
    """Each word is there once. While the gateway is away the page says so, and a message that is sent meanwhile is
    answered when it is back."""
    with ScriptedProvider() as provider:
        config = {**provider.settings, "gateway.port": free_port()}
        async with (
            process_platform(config=config) as running,
            visit(browser, running.url, running.token) as found,
        ):
            page = await found.open()
            await send(page, "slow:80:50")
            await expect(page.get_by_text("word-5 ")).to_be_visible()
            running.kill("gateway")
            await expect(page.get_by_role("alert")).to_contain_text("Trunkline is not reached")
            await send(page, "say:sent while it was away")
            running.kill("monitor")
            await running.restart("gateway")
            await running.restart("monitor")
            await expect(page.locator(".answer", has_text="sent while it was away")).to_be_visible(
                timeout=60_000
            )
            text = await page.locator(".answer").first.inner_text()
            assert re.findall(r"word-(\d+)", text) == [str(number) for number in range(1, 81)]
            await expect(page.get_by_role("alert")).to_have_count(0)
            assert found.problems == []
