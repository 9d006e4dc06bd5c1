"""The plot of what models cost: its figures, its limit, its keyboard, both schemes, German numbers, a phone."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.costs.messages import CostEntry
from trunkline.contracts.costs.subjects import COST
from trunkline.testing.platform import Platform
from trunkline_web_app.plugin import FOLDER

from .conftest import Visit, visit
from .test_pages import DARK, PHONE, axe, check_page

pytestmark = pytest.mark.anyio

__all__ = ["axe"]

DAYS = 12
DEAREST = 1_234_000
"""What the newest day costs, in micro-USD; the days before cost less."""


@pytest.fixture(scope="module")
async def spent(running: Platform) -> Platform:
    """A platform whose ledger has a request of each of the last days, from two models with long names."""
    now = datetime.now(UTC)
    for day in range(DAYS):
        entry = CostEntry(
            id=f"cost_{day}", at=now - timedelta(days=day), block="main", conversation=f"conv_{'x' * 30}",
            adapter="vendor", model=f"a-model-with-quite-a-long-name-{day % 2}", status="finished",
            cost=DEAREST // (day + 1), usage=Usage(input_tokens=1_234_567, output_tokens=7_654),
        )  # fmt: skip
        await running.bus.append(COST, entry, day=entry.day, id=entry.id)
    with anyio.fail_after(60):
        while await requests_of(running) < DAYS:  # noqa: ASYNC110  the ledger is written by another task
            await anyio.sleep(0.1)
    return running


async def requests_of(running: Platform) -> int:
    headers = {"authorization": f"Bearer {running.token}"}
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{running.url}/api/costs", headers=headers)
    return int(answer.json()["total"]["requests"])


async def set_daily_limit(page: Page, amount: str) -> None:
    field = page.get_by_label("US$ a day", exact=True)
    await field.fill(amount)
    await page.get_by_role("listitem").filter(has=field).get_by_role("button", name="Set limit").click()


@pytest.mark.parametrize("options", [PHONE, DARK], ids=["phone", "dark"])
async def test_the_plot_has_the_figures_of_the_table(
    browser: Browser, spent: Platform, axe: str, options: dict[str, Any]
) -> None:
    """Each bar says the figure of a row of the table, by day, block and model. axe finds nothing, and neither the page
    nor the table is wider than a phone."""
    async with visit(browser, spent.url, spent.token, **options) as found:
        page = await found.open("#/activity/spend")
        for group in ("day", "block", "model", "conversation"):
            await page.get_by_role("combobox", name="By").select_option(group)
            plot = page.get_by_role("listbox", name=re.compile("^Cost by", re.IGNORECASE))
            rows = page.locator("table.spend tbody tr:not(:last-child)")
            await expect(page.get_by_role("columnheader", name=group, exact=False).first).to_be_visible()
            await expect(plot.get_by_role("option")).to_have_count(await rows.count())
            named = await plot.get_by_role("option").evaluate_all(
                "(bars) => bars.map((bar) => bar.getAttribute('aria-label'))"
            )
            listed = await rows.evaluate_all(
                "(rows) => rows.map((row) => `${row.cells[0].innerText}: ${row.cells[1].innerText}`)"
            )
            assert named == listed and len(named) >= (DAYS if group == "day" else 1)
            frame = page.locator(".table-frame")
            assert await frame.evaluate("(frame) => frame.scrollWidth <= frame.clientWidth")
            await check_page(page, axe)
        assert found.problems == []


async def test_the_plot_is_read_by_keyboard(spent: Platform, signed_in: Visit) -> None:
    """The plot is one stop of the keyboard. Arrows, Home and End choose a bar, whose figure is shown as text."""
    page = await signed_in.open("#/activity/spend")
    plot = page.get_by_role("listbox", name=re.compile("^Cost by"))
    shown = page.locator(".plot-figure")
    await expect(shown).to_contain_text("1.2340 US$")
    await plot.focus()
    await page.keyboard.press("ArrowLeft")
    await expect(shown).to_contain_text(f"{DEAREST // 2 / 1e6:.4f} US$")
    chosen = plot.get_by_role("option", selected=True)
    await expect(chosen).to_have_count(1)
    assert await plot.get_attribute("aria-activedescendant") == await chosen.get_attribute("id")
    await page.keyboard.press("Home")
    await expect(plot.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("End")
    await expect(shown).to_contain_text("1.2340 US$")


async def test_a_limit_is_a_line(spent: Platform, signed_in: Visit) -> None:
    """The daily limit is a line across the days as soon as it is set. A limit far above all bars is named instead."""
    page = await signed_in.open("#/activity/spend")
    line = page.locator(".plot-limit")
    await expect(page.locator(".plot")).to_be_visible()
    await expect(line).to_have_count(0)
    await set_daily_limit(page, "2.5")
    await expect(page.get_by_text("The line is the limit of 2.5000 US$ a day.")).to_be_visible()
    await expect(line).to_have_count(1)
    place = await line.bounding_box()
    top = await page.locator(".plot-value").last.bounding_box()
    assert place is not None and top is not None and place["y"] < top["y"]
    await page.get_by_role("combobox", name="By").select_option("model")
    await expect(line).to_have_count(0)
    await page.get_by_role("combobox", name="By").select_option("day")
    await set_daily_limit(page, "1000")
    await expect(page.get_by_text("is above the plot")).to_be_visible()
    await expect(line).to_have_count(0)
    await page.get_by_role("button", name="Remove limit").click()
    await expect(page.get_by_text("is above the plot")).to_have_count(0)


async def test_the_plot_follows_the_scheme_and_the_language(browser: Browser, spent: Platform) -> None:
    """The bars have the colour of the scheme, also when it is changed while they are shown. In German the numbers are
    German."""
    async with visit(browser, spent.url, spent.token, locale="de-DE", color_scheme="light") as found:
        page = await found.open("#/activity/spend")
        await expect(page.locator(".plot-figure")).to_contain_text("1,2340 US$")
        await expect(page.locator(".plot .visx-axis-left")).to_contain_text(re.compile(r"\d,\d"))
        await expect(page.locator("table.spend")).to_contain_text("1.234.567 → 7.654")
        colour = "getComputedStyle(document.querySelector('.plot-value')).fill"
        light = await page.evaluate(colour)
        await page.emulate_media(color_scheme="dark")
        assert await page.evaluate(colour) != light
        assert found.problems == []


def test_the_parts_of_the_plot_load_with_it() -> None:
    """No file of the first screen has the plot or the graph: they are files of their own."""
    site = FOLDER / "site"
    if not (site / "index.html").is_file():
        pytest.skip("the web app is not built (scripts/setup app says why)")
    page = (site / "index.html").read_text()
    for part in ("BarPlot", "ChunkGraph"):
        assert [file.name for file in (site / "assets").glob(f"{part}-*.js")] != []
        assert part not in page
