"""A block is made from a template that a person has read, and is told apart by emoji and colour: in the list and above
its conversations, with enough contrast in both themes (MB-F26)."""

from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.testing.platform import Platform

from .conftest import visit
from .test_chat import send_raw
from .test_pages import DARK, PHONE, axe, check_page

__all__ = ["axe"]

pytestmark = pytest.mark.anyio

LIGHT: dict[str, Any] = {"viewport": {"width": 1200, "height": 800}, "color_scheme": "light"}

CONTRAST = """(mark) => {
    const context = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const light = (colour) => {
        context.clearRect(0, 0, 1, 1);
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map((one) => one / 255)
            .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const both = [mark, document.body].map((one) => light(getComputedStyle(one).backgroundColor));
    return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
}"""
"""The contrast of a mark with its ground, as WCAG computes it."""

COLOURS = ("red", "yellow", "teal", "pink", "#000000", "#ffffff", "#ffff00", "#0000ff", "#00ff00", "#14181b")


def card_of(page: Page, block: str) -> Any:
    return page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=block))


async def test_a_block_begins_with_a_template(browser: Browser, running: Platform, axe: str) -> None:
    """On a phone: the template's texts and permissions are shown first; the block has them, and its conversation has
    its colour, emoji and name above it. A template that cannot be used is named with the reason."""
    folder = running.home.templates
    folder.mkdir()
    (folder / "wide.toml").write_text('summary = "s"\nblock.permissions.scope = "system"\n')
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open("#/blocks")
        await expect(page.get_by_text("The template wide cannot be used.")).to_be_visible()
        await page.get_by_label("Name of a new block").fill("library")
        await page.get_by_label("Template").select_option("archivist")
        shown = page.get_by_role("region", name="Template")
        await expect(shown.get_by_text("Orderly and discreet.")).to_be_visible()
        await expect(shown.get_by_text("approvals = all")).to_be_visible()
        await check_page(page, axe)
        await page.get_by_role("button", name="Create").click()
        card = card_of(page, "library")
        await expect(card.locator(".block-mark")).to_have_attribute("data-colour", "purple")
        await expect(card.get_by_text("Memory and documents: order, search and summaries")).to_be_visible()
        monitor = (running.home.memory / "blocks/library/monitor.md").read_text(encoding="utf-8")
        assert "Delete nothing that was not named by the owner." in monitor
        page = await found.open()
        await page.get_by_label("Block").select_option("library")
        await send_raw(page, "raw:Here.")
        head = page.locator(".conversation-head .block-name")
        await expect(head).to_contain_text("library")
        await expect(head.locator(".block-mark")).to_have_attribute("data-colour", "purple")
        await check_page(page, axe)
        assert found.problems == []
    (folder / "wide.toml").unlink()
    folder.rmdir()


async def test_a_colour_is_chosen_and_refused(browser: Browser, running: Platform) -> None:
    """The settings of a block take a colour; what is none is refused with the ones that there are."""
    await running.gateway.create_block("paint")
    async with visit(browser, running.url, running.token) as found:
        page = await found.open("#/blocks")
        card = card_of(page, "paint")
        await expect(card.locator(".block-mark")).to_have_count(0)
        await card.get_by_role("button", name="Settings").click()
        await card.get_by_label("Colour").fill("mauve")
        await card.get_by_role("button", name="Save").click()
        await expect(card.get_by_role("alert")).to_contain_text("one of red, orange")
        await card.get_by_label("Colour").fill("#7a3b12")
        await card.get_by_role("button", name="Save").click()
        await expect(card.locator(".block-mark")).to_have_attribute("data-colour", "#7a3b12")
        assert (await running.gateway.block("paint")).config.monitor_colour == "#7a3b12"


@pytest.mark.parametrize("options", [LIGHT, DARK], ids=["light", "dark"])
async def test_every_colour_is_seen_in_both_themes(
    browser: Browser, running: Platform, options: dict[str, Any]
) -> None:
    """A mark has a contrast of 3 : 1 with its ground, also if its colour is that of the ground."""
    theme = options["color_scheme"]
    for number, colour in enumerate(COLOURS):
        await running.gateway.create_block(f"{theme}-{number}", BlockConfig(monitor_colour=colour))
    async with visit(browser, running.url, running.token, **options) as found:
        page = await found.open("#/blocks")
        for number, colour in enumerate(COLOURS):
            mark = card_of(page, f"{theme}-{number}").locator(".block-mark")
            await expect(mark).to_be_visible()
            assert await mark.evaluate(CONTRAST) >= 3, colour
        chosen = "dark" if theme == "light" else "light"
        await page.evaluate(f"document.documentElement.dataset.theme = '{chosen}'")
        for number, colour in enumerate(COLOURS):
            mark = card_of(page, f"{theme}-{number}").locator(".block-mark")
            assert await mark.evaluate(CONTRAST) >= 3, f"{colour} in the chosen theme"
        assert found.problems == []
    for number in range(len(COLOURS)):
        await running.gateway.delete_block(f"{theme}-{number}")
