"""The card of a call in a real browser: the output of a running program, and the way to undo a change of memory."""

import json
import re
import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from trunkline.testing.platform import Platform, platform

from .conftest import SETTINGS, Scripted, Visit, visit
from .test_chat import send_raw
from .test_pages import PHONE, axe, check_page

pytestmark = pytest.mark.anyio

__all__ = ["axe"]

needs_sandbox = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

PROGRAM = """printf '<b>sown</b> \\033[32mgreen\\033[0m\\n10 %%\\r20 %%\\n'
until [ -e {0} ]; do sleep 0.05; done; echo grown"""
"""Prints two lines, one in colour and one drawn anew, and another one when the file exists."""


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    """A platform where nobody is asked."""
    free = {**SETTINGS, "permissions.allow_shell": True, "permissions.approvals": "none"}
    async with platform(tmp_path_factory.mktemp("home"), plugins=[Scripted()], config=free) as started:
        yield started


async def run_program(page: Page, name: str) -> None:
    """Have the agent run a program that waits for this file."""
    command = json.dumps({"command": PROGRAM.format(name)})
    await send_raw(page, f"call:execute_command {command} ;; say:Harvested.")


@needs_sandbox
async def test_output_is_shown_while_a_program_runs(browser: Browser, running: Platform, axe: str) -> None:
    """On a phone: the card shows the output as text and without a terminal's sequences, also after a reload; at the end
    it gives way to the result."""
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open()
        await run_program(page, "phone")
        live = page.get_by_role("region", name="Output so far")
        await expect(live).to_have_text("<b>sown</b> green\n20 %\n")
        await page.reload()
        await expect(live).to_have_text("<b>sown</b> green\n20 %\n")
        await check_page(page, axe)
        (running.home.workspace("main") / "phone").touch()
        await expect(page.locator(".markdown", has_text="Harvested.")).to_be_visible()
        await expect(live).to_have_count(0)
        card = page.locator(".tool", has_text="execute_command")
        await card.locator("summary").click()
        await expect(card.locator("pre").last).to_contain_text("grown")
        assert found.problems == []


async def write(page: Page, content: str, said: str) -> None:
    """Have the agent write a file of memory."""
    change = json.dumps({"path": "notes/kale.md", "content": content})
    await send_raw(page, f"call:memory_write {change} ;; say:{said}.")
    await expect(page.locator(".markdown", has_text=f"{said}.")).to_be_visible()


async def undo(page: Page, button: Locator, shown: str | re.Pattern[str]) -> None:
    """Choose *Undo*, see the change, and confirm."""
    await button.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.locator(".diff-added", has_text=shown)).to_be_visible()
    await dialog.get_by_role("button", name="Undo").click()


async def test_a_change_of_memory_is_undone_in_its_card(
    signed_in: Visit, running: Platform, axe: str
) -> None:
    """The dialog shows what would be taken back. A change that was overtaken is not undone, and a sentence says so.
    What was undone is shown as such, also after a reload, and the other card can be undone then."""
    page = await signed_in.open()
    await write(page, "Sow kale in May.\n", "First")
    await write(page, "Sow kale in June.\n", "Second")
    file = running.home.memory / "blocks/main/notes/kale.md"
    cards = page.locator(".tool", has_text="memory_write")
    await undo(page, cards.nth(0).get_by_role("button", name="Undo"), "+Sow kale in May.")
    await expect(page.get_by_role("alert")).to_contain_text("Nothing was undone")
    assert "June" in file.read_text()
    await undo(page, cards.nth(1).get_by_role("button", name="Undo"), "+Sow kale in June.")
    await expect(cards.nth(1).get_by_text("Undone.")).to_be_visible()
    assert "May" in file.read_text()
    await check_page(page, axe)
    await page.reload()
    await expect(cards.nth(1).get_by_text("Undone.")).to_be_visible()
    await expect(cards.nth(1).get_by_role("button", name="Undo")).to_have_count(0)
    await page.get_by_role("button", name="Undo").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert "May" in file.read_text()
    await undo(page, page.get_by_role("button", name="Undo"), re.compile("May"))
    await expect(cards.nth(0).get_by_text("Undone.")).to_be_visible()
    assert not file.exists()
