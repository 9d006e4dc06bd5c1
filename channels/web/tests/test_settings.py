"""The forms of settings: made from the schema of each section, and written into ``trunkline.toml``."""

import tomllib
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from trunkline.testing.platform import Platform

from .conftest import Visit, visit
from .test_pages import PHONE, axe, check_page

pytestmark = pytest.mark.anyio

__all__ = ["axe"]  # a fixture


def written(running: Platform, section: str) -> dict[str, Any]:
    file = running.home.path / "trunkline.toml"
    found = tomllib.loads(file.read_text()) if file.exists() else {}
    for name in section.split("."):
        found = found.get(name, {})
    return found


async def test_mb_f20_a_plugin_is_set_up_in_a_form(signed_in: Visit, running: Platform) -> None:
    """MB-F20: a number, a choice and a list go into the file; a form says what the plugin asks for, and that a restart
    is needed."""
    page = await signed_in.open("#/settings")
    card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="web in use"))
    await expect(card.get_by_text("BRAVE_API_KEY, or the brave_key")).to_be_visible()
    await card.get_by_role("link", name="plugins.web").click()
    await page.get_by_label("timeout").fill("30")
    await page.get_by_label("search", exact=True).select_option("searxng")
    await page.get_by_label("searxng_url").fill("https://search.example.org")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved. Restart Trunkline to apply it.")).to_be_visible()
    assert written(running, "plugins.web") == {
        "timeout": 30, "search": "searxng", "searxng_url": "https://search.example.org",
    }  # fmt: skip
    await expect(page.get_by_text("Changed in trunkline.toml").first).to_be_visible()
    await page.get_by_role("link", name="All settings").click()
    await page.get_by_role("link", name="plugins.git", exact=True).click()
    await page.get_by_label("protected_branches").fill("main\nlive")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved. Restart Trunkline to apply it.")).to_be_visible()
    assert written(running, "plugins.git") == {"protected_branches": ["main", "live"]}


async def test_an_error_stands_at_its_field_and_a_key_is_never_kept(
    signed_in: Visit, running: Platform
) -> None:
    """What was typed stays, the field says what is wrong, and a key in place of its name is refused."""
    page = await signed_in.open("#/settings/adapters.openai")
    await page.get_by_label("base_url").fill("nowhere")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert")).to_contain_text("not a web address")
    await expect(page.get_by_label("base_url")).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_label("base_url")).to_have_value("nowhere")
    await page.get_by_label("base_url").fill("")
    key = page.get_by_label("api_key")
    await key.fill("sk-proj-" + "Zb4" * 16)
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert")).to_contain_text("the name of the variable")
    await key.fill("NO_SUCH_KEY_HERE")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("NO_SUCH_KEY_HERE is not set")).to_be_visible()
    assert written(running, "adapters.openai") == {"api_key": {"env": "NO_SUCH_KEY_HERE"}}


async def test_mb_f26_general_settings_on_a_phone(browser: Browser, running: Platform, axe: str) -> None:
    """MB-F26: the platform's settings have a form, too; axe finds nothing on both pages."""
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open("#/settings")
        await expect(page.get_by_role("heading", name="Plugins")).to_be_visible()
        await check_page(page, axe)
        await page.get_by_role("link", name="telemetry").click()
        await page.get_by_label("log_level").select_option("warning")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Saved. Restart Trunkline to apply it.")).to_be_visible()
        await check_page(page, axe)
        assert written(running, "telemetry") == {"log_level": "warning"}
        assert found.problems == []
