"""The pages of memory: what an agent wrote is found, traced to its turn, changed and taken back."""

import pytest
from playwright.async_api import Browser, expect

from trunkline.testing.platform import Platform

from .conftest import visit
from .test_chat import send_raw
from .test_pages import PHONE, axe, check_page

pytestmark = pytest.mark.anyio

__all__ = ["axe"]

NOTE = "blocks/main/notes/beans.md"


async def test_a_note_is_traced_changed_and_taken_back(browser: Browser, running: Platform, axe: str) -> None:
    """On a phone: the search finds what an agent wrote and says why; the line leads to its turn; a change is shown as a
    diff before it is saved; the history takes the change back."""
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open()
        text = '{"path": "notes/beans.md", "content": "Sow runner beans in May.\\n"}'
        await send_raw(page, f"call:memory_write {text} ;; say:Noted.")
        await page.get_by_role("button", name="Allow", exact=True).click()
        await expect(page.locator(".answer", has_text="Noted.")).to_be_visible()
        conversation = page.url.rpartition("/")[2]
        await page.get_by_role("link", name="Memory").click()
        await page.get_by_role("searchbox").fill("runner beans")
        await page.get_by_role("button", name="Search").click()
        await page.get_by_text("Why:").first.click()
        await expect(page.locator(".why dt", has_text="words").first).to_be_visible()
        await check_page(page, axe)
        await page.get_by_role("link", name=NOTE).first.click()
        await page.get_by_role("button", name="Edit").click()
        await page.get_by_label(f"Text of {NOTE}").fill("Sow runner beans in June.\n")
        await page.get_by_role("button", name="Show the change").click()
        await expect(page.locator(".diff-removed", has_text="in May")).to_be_visible()
        await expect(page.locator(".diff-added", has_text="in June")).to_be_visible()
        file = running.home.memory / NOTE
        assert "May" in file.read_text()
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Saved as a commit of yours.")).to_be_visible()
        assert "June" in file.read_text()
        await page.get_by_role("button", name="History").click()
        newest = page.get_by_role("listitem").first
        await newest.get_by_role("button", name="What it changed").click()
        await expect(newest.locator(".diff-added", has_text="in June")).to_be_visible()
        await check_page(page, axe)
        await newest.get_by_role("button", name="Undo").click()
        await page.get_by_role("dialog").get_by_role("button", name="Undo").click()
        await expect(page.get_by_role("listitem")).to_have_count(3)
        assert "May" in file.read_text()
        await page.get_by_role("listitem").last.get_by_role("link", name="the turn").click()
        await expect(page.locator("[data-shown=true]", has_text="Noted.")).to_be_visible()
        assert conversation in page.url
        assert found.problems == []


async def test_the_tree_shows_who_wrote_each_line(browser: Browser, running: Platform, axe: str) -> None:
    """By keyboard alone: folders open, the file names the writer of each line, and a change that was overtaken is
    refused, with what was typed still there."""
    path = "blocks/main/kale/kale.md"
    async with visit(browser, running.url, running.token) as found:
        kale = {"path": path, "content": "Kale likes frost.\n"}
        assert (await found.page.request.put(f"{running.url}/api/memory/file", data=kale)).ok
        page = await found.open("#/memory")
        for name in ("blocks", "main", "kale"):
            await page.get_by_role("button", name=name, exact=True).focus()
            await page.keyboard.press("Enter")
        await page.get_by_role("link", name="kale.md").focus()
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Who wrote it").click()
        await expect(page.locator(".authors")).to_contain_text("Kale likes frost.")
        await check_page(page, axe)
        await page.get_by_role("button", name="Text", exact=True).click()
        await page.get_by_role("button", name="Edit").click()
        field = page.get_by_label(f"Text of {path}")
        await field.fill("Mine.\n")
        await page.get_by_role("button", name="Show the change").click()
        await expect(page.get_by_role("button", name="Save")).to_be_visible()
        (running.home.memory / path).write_text("Theirs.\n")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text("changed meanwhile")
        await expect(field).to_have_value("Mine.\n")
        assert found.problems == []
