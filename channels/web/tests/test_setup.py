"""The first steps with a real browser: a model server on this machine, a vendor's key, and a first answer."""

import tomllib
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, expect

from trunkline.testing.platform import clean_environ, platform
from trunkline.testing.scripted_provider import ScriptedProvider

from .conftest import visit
from .test_pages import axe, check_page

pytestmark = pytest.mark.anyio

__all__ = ["axe"]  # a fixture


async def choose_local(page: Page, server: str) -> None:
    """Look for servers, and choose the one that answers; the key of a vendor is asked for by the name of its
    variable."""
    await page.get_by_label("Anthropic").check()
    await expect(page.get_by_label("environment variable with the key")).to_have_value("ANTHROPIC_API_KEY")
    await expect(page.get_by_text("ANTHROPIC_API_KEY is not set where Trunkline runs")).to_be_visible()
    await expect(page.get_by_text("would ask these addresses of its own machine")).to_contain_text(server)
    await page.get_by_role("button", name="Look for model servers").click()
    await page.get_by_role("button", name="Use Ollama with scripted").click()
    await expect(page.get_by_label("Address of the server")).to_have_value(f"http://{server}")
    await page.get_by_label("Name of the first block").fill("garden")
    await page.get_by_label("about every call").check()


async def set_up_telegram(page: Page) -> None:
    """Open what a channel needs, and say who its owner is. The bot's token is asked for by the name of its variable."""
    await page.get_by_text("telegram", exact=True).click()
    form = page.get_by_role("form", name="channels.telegram")
    await expect(page.get_by_text("by default in the variable TELEGRAM_BOT_TOKEN")).to_be_visible()
    await expect(form.get_by_label("token", exact=True)).to_have_value("")
    await form.get_by_label("owners").fill("1234567")
    await form.get_by_role("button", name="Save").click()
    await expect(form.get_by_text("Restart Trunkline to apply it")).to_be_visible()


async def test_mb_f26_from_the_first_start_to_a_first_answer(
    browser: Browser, tmp_path: Path, axe: str
) -> None:
    """MB-F26: the page says that no model is set up, the search for servers is announced, a channel is set up, nothing
    is sent before the person agrees, and after the restart the first block answers from the server on this machine."""
    async with ScriptedProvider(["say:Hello, I am local."]).serving() as provider, AsyncExitStack() as pages:
        server = urlsplit(provider.address).netloc
        environ = {**clean_environ(), "OLLAMA_HOST": server}
        async with platform(tmp_path, environ=environ) as running:
            port = urlsplit(running.url).port
            found = await pages.enter_async_context(visit(browser, running.url, running.token))
            page = await found.open("#/setup")
            await expect(page.get_by_text("No model is set up")).to_be_visible()
            await choose_local(page, server)
            await set_up_telegram(page)
            await check_page(page, axe)
            await expect(page.get_by_text("Nothing is sent.")).to_be_visible()
            await page.locator("form.setup").get_by_role("button", name="Save", exact=True).click()
            await expect(page.get_by_text("Now restart Trunkline")).to_be_visible()
        settings = tomllib.loads((tmp_path / "trunkline.toml").read_text())
        assert settings["adapters"] == {"ollama": {"base_url": f"http://{server}", "model": "scripted"}}
        assert settings["runtime"] == {"provider_adapter": "ollama"}
        assert settings["channels"] == {"telegram": {"owners": [1234567]}}
        assert provider.answer_requests == []
        async with platform(tmp_path, environ=environ, config={"gateway.port": port}) as running:
            await page.get_by_role("button", name="Save and begin").click()
            await expect(page.locator(".answer", has_text="Hello, I am local.")).to_be_visible(timeout=60_000)
            block = (running.home.memory / "blocks/garden/block.toml").read_text()
            assert 'approvals = "all"' in block
            assert found.problems == []
