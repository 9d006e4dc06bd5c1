"""The schedules in the web app: what is due and what became of it, on a phone, and the owner's changes."""

from datetime import timedelta

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from plugins.pulse.tests.pulse_platform import write_schedule_file
from trunkline.api.memory import utc_now
from trunkline.testing.platform import Platform

from .conftest import visit
from .test_pages import DARK, PHONE, axe, check_page

__all__ = ["axe"]

pytestmark = pytest.mark.anyio

LATER = f"""\
instruction = "say:watered"
time_zone = "Asia/Tokyo"
at = {utc_now() + timedelta(days=2):%Y-%m-%d}T06:30:00
"""


async def test_a_schedule_is_run_paused_and_removed_on_a_phone(
    browser: Browser, running: Platform, axe: str
) -> None:
    """The next time is that of the schedule's own zone, a run leads to its conversation, a wrong file is named, and
    nothing is removed without a question. In the dark and in German the page is as good."""
    await write_schedule_file(running.bus, "main", "water", LATER)
    await write_schedule_file(running.bus, "main", "wrong", 'instruction = "x"\ncron = "99 * * * *"\n')
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open()
        await page.get_by_role("link", name="Schedules").click()
        water, wrong = card(page, "water"), card(page, "wrong")
        await expect(water.get_by_text("06:30:00")).to_be_visible()
        await expect(water.get_by_text("(Asia/Tokyo)")).to_be_visible()
        await expect(wrong.get_by_text("must be corrected")).to_be_visible()
        await expect(wrong.get_by_text("99 * * * *").first).to_be_visible()
        await water.get_by_role("button", name="Run now").click()
        await expect(water.get_by_text("Last runs: done")).to_be_visible(timeout=60_000)
        await water.get_by_text("Last runs").click()
        await expect(water.get_by_role("link", name="Trace")).to_be_visible()
        await water.get_by_role("button", name="Pause").click()
        await expect(water.get_by_text("paused")).to_be_visible()
        await check_page(page, axe)
        await water.get_by_role("button", name="Remove").click()
        await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        await water.get_by_role("link", name="Conversation").click()
        await expect(page.locator(".answer", has_text="watered")).to_be_visible()
        assert found.problems == []
    async with visit(browser, running.url, running.token, locale="de-DE", **DARK) as found:
        page = await found.open("#/schedules")
        await expect(page.get_by_role("heading", name="Zeitpläne")).to_be_visible()
        await expect(card(page, "water").get_by_text("pausiert")).to_be_visible()
        await check_page(page, axe)
        for name in ("water", "wrong"):
            await card(page, name).get_by_role("button", name="Entfernen").click()
            await page.get_by_role("dialog").get_by_role("button", name="Entfernen").click()
            await expect(card(page, name)).to_have_count(0)
        await expect(page.get_by_text("Es gibt keinen Zeitplan.")).to_be_visible()
        assert found.problems == []


def card(page: Page, name: str) -> Locator:
    """The card of a schedule."""
    return page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=name))
