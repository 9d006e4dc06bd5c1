"""A passkey in a real browser, with the authenticator that Chromium has in software for tests."""

from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from trunkline.contracts.auth.client import AuthClient
from trunkline.testing.platform import Platform

from .conftest import visit
from .test_pages import PHONE, axe, check_page

__all__ = ["axe"]

pytestmark = pytest.mark.anyio


async def plug_in(page: Page, **changes: Any) -> None:
    """Give the page an authenticator that knows its person."""
    session = await page.context.new_cdp_session(page)
    await session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
        "isUserVerified": True, "automaticPresenceSimulation": True, **changes,
    }  # fmt: skip
    await session.send("WebAuthn.addVirtualAuthenticator", {"options": options})


async def pair(page: Page, running: Platform) -> None:
    await page.get_by_label("Code").fill((await AuthClient(running.bus).start_pairing()).code)
    await page.get_by_role("button", name="Sign in").click()


async def open_account(page: Page) -> None:
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("menuitem", name="Account").click()
    await expect(page.get_by_role("heading", name="Passkeys")).to_be_visible()


async def sign_out(page: Page) -> None:
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


async def test_a_passkey_signs_in_until_it_is_removed(browser: Browser, running: Platform, axe: str) -> None:
    """Pair, add a passkey, sign out, sign in with it, remove it: the page is signed out, and the passkey is refused."""
    url = running.url.replace("127.0.0.1", "localhost")
    async with visit(browser, url, **PHONE) as found:
        page = await found.open()
        await plug_in(page)
        await pair(page, running)
        await open_account(page)
        await page.get_by_label("Name of a new passkey").fill("my phone")
        await page.get_by_role("button", name="Add a passkey").click()
        card = page.get_by_role("listitem").filter(has_text="my phone")
        await expect(card.get_by_text("last used: never")).to_be_visible()
        await check_page(page, axe)
        await page.get_by_label("Name of a new passkey").fill("twice")
        await page.get_by_role("button", name="Add a passkey").click()
        await expect(page.get_by_text("has a passkey for this account already")).to_be_visible()
        await sign_out(page)
        await page.get_by_role("button", name="Use a passkey").click()
        await open_account(page)
        await expect(card.get_by_text("signed in with it")).to_be_visible()
        await card.get_by_role("button", name="Remove").click()
        await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        await page.get_by_role("button", name="Use a passkey").click()
        await expect(page.get_by_text("not valid here any more")).to_be_visible()
        assert found.problems == []
    assert await AuthClient(running.bus).passkeys() == ()


async def test_a_page_at_an_address_says_where_passkeys_work(browser: Browser, running: Platform) -> None:
    """Browsers have no passkeys at 127.0.0.1: nothing is offered there that would fail, and the page says why."""
    async with visit(browser, running.url) as found:
        page = await found.open()
        await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        assert await page.get_by_role("button", name="Use a passkey").count() == 0
        await pair(page, running)
        await open_account(page)
        await expect(page.get_by_text("Browsers have passkeys at http://localhost")).to_be_visible()
        await expect(
            page.get_by_text(running.url.replace("127.0.0.1", "localhost") + "/pair")
        ).to_be_visible()
        assert await page.get_by_role("button", name="Add a passkey").count() == 0


async def test_a_person_who_is_not_verified_adds_no_passkey(browser: Browser, running: Platform) -> None:
    """The authenticator declines, and the page says so in a sentence."""
    url = running.url.replace("127.0.0.1", "localhost")
    async with visit(browser, url) as found:
        page = await found.open()
        await plug_in(page, isUserVerified=False)
        await pair(page, running)
        await open_account(page)
        await page.get_by_label("Name of a new passkey").fill("nobody")
        await page.get_by_role("button", name="Add a passkey").click()
        await expect(page.get_by_text("The browser gave no passkey")).to_be_visible()
    assert await AuthClient(running.bus).passkeys() == ()
