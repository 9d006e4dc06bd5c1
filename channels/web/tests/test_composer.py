"""The field for messages: slash commands, files, and formulas in the answer."""

import json
import re
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from trunkline.contracts.auth.client import AuthClient
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.testing.platform import Platform

from .conftest import Visit, visit
from .test_chat import send, send_raw
from .test_pages import PHONE, axe, check_page

pytestmark = pytest.mark.anyio

__all__ = ["axe"]

FORMULAS = r"""raw:It costs $5 or $6, and \(a^2\) is a square.

$$
x = \frac{1}{2}
- y
$$

`\(code\)` and \href{javascript:alert(1)}{no}

$$\href{javascript:alert(1)}{x}$$

1. one
2. two"""

PASTE = """(field) => {
  const data = new DataTransfer();
  data.items.add(new File(["Sow in May."], "beans.txt", { type: "text/plain" }));
  field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""

DROP = """(field) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array([0, 1, 2])], "strange.bin"));
  field.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


async def test_commands_are_completed_and_carried_out(signed_in: Visit) -> None:
    """A slash offers the commands of the terminal; arrow keys and Tab choose; a command that does not exist is told and
    stays in the field until a message is sent; ``//`` sends a slash."""
    page = await signed_in.open()
    await send(page, "say:about turnips")
    await expect(page.get_by_role("button", name="Ask again")).to_be_visible()
    field = page.get_by_label("Message", exact=True)
    await field.press_sequentially("/t")
    await expect(page.get_by_role("option", name="/title")).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("Tab")
    await expect(field).to_have_value("/title ")
    await field.press_sequentially("Roots")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Roots")).to_be_visible()
    await send(page, "/status")
    await expect(page.get_by_role("status").filter(has_text="scripted")).to_be_visible()
    await send(page, "/nothing")
    await expect(page.get_by_role("alert")).to_contain_text("There is no command /nothing.")
    await expect(field).to_have_value("/nothing")
    await send(page, "//etc")
    await expect(page.locator(".question").last).to_have_text(re.compile("/etc$"))
    await send(page, "/nothing")
    await expect(page.get_by_role("alert")).to_be_visible()
    await send(page, "say:on")
    await expect(page.locator(".answer", has_text="on")).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_a_conversation_is_saved_as_a_file(signed_in: Visit) -> None:
    """``/save`` gives the messages as JSON, those of tools included."""
    page = await signed_in.open()
    await send(page, "call:list_skills {} ;; say:done")
    await expect(page.get_by_role("button", name="Ask again")).to_be_visible()
    async with page.expect_download() as download:
        await send(page, "/save")
    path = await (await download.value).path()
    stored: dict[str, Any] = json.loads(path.read_text())
    assert [message["role"] for message in stored["messages"]] == ["user", "assistant", "tool", "assistant"]


async def test_files_are_pasted_dropped_and_sent(signed_in: Visit) -> None:
    """A pasted file is uploaded and sent with the message, and the model gets it; a reload still shows its name. A file
    that no model takes is refused, and what was typed comes back."""
    page = await signed_in.open()
    field = page.get_by_label("Message", exact=True)
    await field.evaluate(PASTE)
    await expect(page.locator(".attachments li", has_text="beans.txt")).to_have_attribute(
        "aria-busy", "false"
    )
    await send(page, "say:Read it.")
    await expect(page.locator(".answer", has_text="Sow in May.")).to_be_visible()
    await page.reload()
    await expect(page.get_by_role("list", name="Files").get_by_text("beans.txt")).to_be_visible()
    await field.evaluate(DROP)
    await expect(page.locator(".attachments li", has_text="strange.bin")).to_have_attribute(
        "aria-busy", "false"
    )
    await send(page, "say:And this.")
    await expect(page.get_by_role("alert").filter(has_text="The request is refused")).to_be_visible()
    await page.get_by_role("button", name="Back to the message field").click()
    await expect(field).to_have_value("say:And this.")


async def test_a_document_goes_into_memory_by_choice(browser: Browser, running: Platform, axe: str) -> None:
    """By keyboard alone, on a phone: a document that was chosen for memory is stored when the message is sent, and the
    message names its path and does not take the file. One that memory refuses is told, nothing is sent, and what was
    typed stays. Who may not write memory has no such choice."""
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open()
        field = page.get_by_label("Message", exact=True)
        await field.evaluate(PASTE)
        chip = page.locator(".attachments li", has_text="beans.txt")
        await expect(chip).to_have_attribute("aria-busy", "false")
        where = page.get_by_label("Where beans.txt goes")
        await expect(where).to_have_value("message")
        await where.focus()
        await page.keyboard.press("ArrowDown")
        await expect(where).to_have_value("memory")
        await check_page(page, axe)
        file = running.home.memory / "documents/beans.txt"
        assert not file.exists()
        await send_raw(page, "raw:Kept.")
        question = page.locator(".question").last
        await expect(question).to_contain_text("In memory: /documents/beans.txt")
        await expect(page.locator(".answer", has_text="Kept.")).to_be_visible()
        await expect(page.locator(".attachments")).to_have_count(0)
        assert file.read_text() == "Sow in May."
        await field.evaluate(DROP)
        await page.get_by_label("Where strange.bin goes").select_option("into memory")
        await send_raw(page, "raw:And this.")
        await expect(page.get_by_role("alert")).to_contain_text("no reader is there for it")
        await expect(field).to_have_value("raw:And this.")
        await page.get_by_role("button", name="Remove strange.bin").click()
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator(".answer", has_text="And this.")).to_be_visible()
        assert found.problems == []
    token = (await AuthClient(running.bus).issue_token("owner", TokenScope.OPERATE)).text
    async with visit(browser, running.url, token) as found:
        page = await found.open()
        await page.get_by_label("Message", exact=True).evaluate(PASTE)
        await expect(page.get_by_role("button", name="Remove beans.txt")).to_be_visible()
        await expect(page.get_by_label("Where beans.txt goes")).to_have_count(0)


async def test_formulas_are_drawn_on_a_phone(browser: Browser, running: Platform, axe: str) -> None:
    """Formulas become MathML; a price, code and a list stay what they are, and a formula makes no link."""
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open()
        await send_raw(page, FORMULAS)
        answer = page.locator(".answer")
        await expect(answer.locator("math mfrac")).to_be_visible()
        await expect(answer.locator("math msup")).to_be_visible()
        await expect(answer.get_by_text("It costs $5 or $6")).to_be_visible()
        await expect(answer.locator("code", has_text=r"\(code\)")).to_be_visible()
        await expect(answer.locator("ol > li")).to_have_count(2)
        assert await page.locator("[href^=javascript]").count() == 0
        await page.get_by_label("Message", exact=True).fill("/")
        await expect(page.get_by_role("option", name="/help")).to_be_visible()
        await check_page(page, axe)
        assert found.problems == []
