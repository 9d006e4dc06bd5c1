"""The HUD of an agent in a real browser: gauges from the same data as the terminal's box."""

import pytest
from playwright.async_api import Browser, expect

from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE
from trunkline.testing.platform import Platform

from .conftest import visit
from .test_chat import send_raw
from .test_pages import PHONE, axe, check_page

__all__ = ["axe"]

pytestmark = pytest.mark.anyio


async def test_sliders_and_mode_are_shown_as_gauges(browser: Browser, running: Platform, axe: str) -> None:
    """RLM-F26: what is chosen is what the HUD of an answer shows: one line, and the sliders when it is opened."""
    chosen = WriteMemory(
        path="sliders.json", content='{"hud": "data", "sliders": {"humor": 80}}', actor="test"
    )
    await running.bus.call(MEMORY_WRITE, chosen)
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open()
        await send_raw(page, "say:here")
        await expect(page.get_by_role("button", name="Ask again")).to_be_visible()
        hud = page.locator(".turn").last.locator(".hud")
        await expect(hud.get_by_text("context: Stable")).to_be_visible()
        await expect(hud.get_by_role("meter").first).to_be_hidden()
        await hud.locator("summary").click()
        humor = hud.get_by_label("Humor Amp")
        await expect(humor).to_have_attribute("value", "80")
        await expect(hud.get_by_role("listitem").filter(has_text="Humor Amp")).to_contain_text(
            "80% (default 45%)"
        )
        assert await hud.get_by_role("meter").count() == 6
        assert await page.locator(".status-box").count() == 0
        await check_page(page, axe)
        assert found.problems == []
