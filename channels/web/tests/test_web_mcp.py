"""The owner adds, tests, changes, switches off and removes MCP servers in the web app. What a server runs is shown in
full before it is saved, and a value is the name of a variable."""

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from plugins.mcp.tests.mcp_servers import HOSTILE, BarePlugin
from trunkline.testing.platform import Platform, platform

from .conftest import visit
from .test_pages import PHONE, axe, check_page

__all__ = ["axe"]

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    config = {
        "plugins.disabled": ("trunkline-sandbox",),
    }  # so that these programs run as they are
    async with platform(tmp_path_factory.mktemp("home"), plugins=[BarePlugin()], config=config) as started:
        yield started


def written(running: Platform) -> dict[str, Any]:
    file = running.home.path / "mcp.json"
    return dict(json.loads(file.read_text())["mcpServers"]) if file.exists() else {}


def write(running: Platform, servers: dict[str, Any]) -> None:
    (running.home.path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


async def confirm(page: Page, *shown: str) -> None:
    """Save, read what is shown in full, and save."""
    await page.get_by_role("form").get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="Is this right?")
    for text in shown:
        await expect(dialog).to_contain_text(text)
    await dialog.get_by_role("button", name="Save").click()


async def test_a_server_is_set_up_on_a_phone(browser: Browser, running: Platform, axe: str) -> None:
    """Nothing is written before the whole entry was confirmed. Then the server is connected, its tools are listed, and
    it is changed, switched off and removed; axe finds nothing on the way."""
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open()
        await page.get_by_role("button", name="Menu").click()
        await page.get_by_role("menuitem", name="MCP servers").click()
        await expect(page.get_by_text("There are none.")).to_be_visible()
        await page.get_by_role("button", name="Add a server").click()
        await page.get_by_label("Name of the server").fill("notes")
        await page.get_by_label("Program and arguments").fill(f"{sys.executable}\n{HOSTILE}\necho")
        await page.get_by_label("Environment").fill("TOKEN=MY_TOKEN\nWANTS")
        await check_page(page, axe)
        await page.get_by_role("form").get_by_role("button", name="Save").click()
        dialog = page.get_by_role("dialog", name="Is this right?")
        await expect(dialog).to_contain_text(str(HOSTILE))
        await check_page(page, axe)
        assert written(running) == {}
        await dialog.get_by_role("button", name="Cancel").click()
        assert written(running) == {}
        await page.get_by_label("Environment").fill("")
        await confirm(page, sys.executable, "echo")
        card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="notes"))
        await card.get_by_role("button", name="Test").click()
        await expect(card.get_by_text("It is connected and offers 7 tools.")).to_be_visible(timeout=60_000)
        await card.get_by_text("7 tools", exact=True).click()
        await expect(card.get_by_text("environ")).to_be_visible()
        await check_page(page, axe)
        await card.get_by_role("button", name="Change").click()
        await page.get_by_label("Environment").fill("KEY=MY_KEY")
        await page.get_by_label("I trust it").check()
        await confirm(page, "MY_KEY", "trusted")
        await expect(card.locator(".badge", has_text="trusted")).to_have_text("trusted")
        assert written(running)["notes"] == {
            "command": sys.executable,
            "args": [str(HOSTILE), "echo"],
            "env": {"KEY": {"env": "MY_KEY"}},
            "network": False,
            "trust": "trusted",
        }
        await card.get_by_role("button", name="Test").click()
        await expect(card.get_by_text("MY_KEY").last).to_be_visible(timeout=60_000)  # no such variable is set
        await card.get_by_role("button", name="Switch off").click()
        await expect(card.locator(".badge", has_text="switched off")).to_be_visible()
        assert written(running)["notes"]["disabled"] is True
        await card.get_by_role("button", name="Remove").click()
        await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        await expect(page.get_by_text("There are none.")).to_be_visible()
        assert written(running) == {}
        assert found.problems == []


async def test_what_is_refused_is_said_and_what_was_typed_stays(browser: Browser, running: Platform) -> None:
    """A name of a variable that is none, and a name that is taken; and a text of the file is neither shown nor lost."""
    kept = {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "sk-in-the-file"}}
    write(running, {"docs": kept})
    async with visit(browser, running.url, running.token) as found:
        page = await found.open("#/mcp")
        card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="docs"))
        await expect(card).to_be_visible()
        await page.get_by_role("button", name="Add a server").click()
        await page.get_by_label("What it is").select_option("address")
        await page.get_by_label("Name of the server").fill("docs")
        await page.get_by_label("Address", exact=True).fill("http://127.0.0.1:9/other")
        await page.get_by_label("Headers").fill("X-Key=not a name")
        await confirm(page)
        await expect(page.get_by_role("form").get_by_role("alert")).to_contain_text("headers")
        await page.get_by_label("Headers").fill("X-Key=A_NAME")
        await confirm(page)
        await expect(page.get_by_role("form").get_by_role("alert")).to_contain_text("docs")
        await expect(page.get_by_label("Headers")).to_have_value("X-Key=A_NAME")
        await page.get_by_role("form").get_by_role("button", name="Cancel").click()
        await card.get_by_role("button", name="Change").click()
        await expect(card.get_by_text("They are not shown, and stay: Authorization")).to_be_visible()
        await page.get_by_label("Address", exact=True).fill("http://127.0.0.1:9/new")
        await confirm(page, "http://127.0.0.1:9/new")
        await expect(card.locator("code", has_text="/new")).to_be_visible()
        assert "sk-in-the-file" not in await page.content()
        assert written(running) == {"docs": {**kept, "url": "http://127.0.0.1:9/new"}}
