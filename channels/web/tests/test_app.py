"""The app as a whole: signing in, navigation, languages, and what it never does."""

import pytest
from playwright.async_api import Browser, expect

from trunkline.contracts.auth.client import AuthClient
from trunkline.testing.platform import Platform

from .conftest import Visit, visit

pytestmark = pytest.mark.anyio


async def test_a_visitor_is_asked_to_sign_in(browser: Browser, running: Platform) -> None:
    """Without a credential there is a page that says how to get in, and a wrong code is a sentence."""
    async with visit(browser, running.url) as found:
        page = await found.open()
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        await page.get_by_label("Code").fill("WRONGCODE")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_be_visible()
        assert found.problems == []


async def test_pages_are_reached_by_link_and_keyboard(signed_in: Visit) -> None:
    """The first Tab leads past the navigation; the link of the page is marked; back returns."""
    page = await signed_in.open("#/blocks")
    await expect(page.get_by_role("link", name="Blocks")).to_have_attribute("aria-current", "page")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await page.get_by_role("link", name="Approvals").click()
    await expect(page.get_by_role("link", name="Approvals")).to_have_attribute("aria-current", "page")
    await page.go_back()
    await expect(page.get_by_role("link", name="Blocks")).to_have_attribute("aria-current", "page")


async def test_language_and_appearance_are_kept(signed_in: Visit) -> None:
    """What is chosen in the menu holds after a reload."""
    page = await signed_in.open()
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("menuitemradio", name="Dark").click()
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("menuitemradio", name="Deutsch").click()
    await page.reload()
    await expect(page.get_by_role("link", name="Freigaben")).to_be_visible()
    assert await page.locator("html").get_attribute("lang") == "de"
    assert await page.locator("html").get_attribute("data-theme") == "dark"


async def test_mb_f28_a_plugin_adds_a_language(browser: Browser, running: Platform) -> None:
    """MB-F28: The app begins in the language that the browser prefers, on the page to sign in too. A text that the
    plugin does not have, or whose placeholders are wrong, is English. Another visit begins in the same language, even
    before the gateway answers."""
    async with visit(browser, running.url, locale="eo") as found:
        page = await found.open()
        await expect(page.get_by_role("heading", name="Ensaluti")).to_be_visible()
        await expect(page.get_by_label("Code")).to_be_visible()
        assert await page.locator("html").get_attribute("lang") == "eo"
        assert found.problems == []
    async with visit(browser, running.url, running.token, locale="eo") as found:
        page = await found.open()
        await expect(page.get_by_role("link", name="Blokoj")).to_be_visible()
        await page.route("**/api/locales", lambda route: route.abort())
        await page.reload()
        await expect(page.get_by_role("link", name="Blokoj")).to_be_visible()
        await page.get_by_role("button", name="Menu").click()
        await expect(page.get_by_role("menuitem", name="Sign out", exact=True)).to_be_visible()


async def test_a_link_signs_in_and_leaves_no_trace(browser: Browser, running: Platform) -> None:
    """CC-T6: the page of a code or a link leads to the app's own address, without the code in the address or in the
    history. The session is listed with the name of the browser and of its system."""
    auth = AuthClient(running.bus)
    async with visit(browser, running.url) as found:
        page = await found.page.context.new_page()
        await page.goto(f"{running.url}/pair#{(await auth.start_pairing()).code}")
        await expect(page.get_by_label("Message", exact=True)).to_be_visible()
        assert page.url.removesuffix("#/chat") == f"{running.url}/"
        assert await page.evaluate("history.length") == 2  # the empty page before it
        assert (await auth.tokens())[-1].label == "Chrome, Linux"


async def test_a_browser_is_paired_and_signed_out(browser: Browser, running: Platform) -> None:
    """A code signs the browser in by a cookie that no script reads, with which requests and the WebSocket work. Signing
    out ends it and forgets drafts."""
    async with visit(browser, running.url) as found:
        page = await found.open()
        await page.get_by_label("Code").fill((await AuthClient(running.bus).start_pairing()).code)
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_label("Message", exact=True).fill("say:paired")
        await page.keyboard.press("Enter")
        await expect(page.locator(".markdown", has_text="paired")).to_be_visible()
        assert "trunkline_session" not in await page.evaluate("document.cookie")
        await page.get_by_label("Message", exact=True).fill("a secret draft")
        await page.get_by_role("button", name="Menu").click()
        await page.get_by_role("menuitem", name="Sign out").click()
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert "secret" not in await page.evaluate("JSON.stringify({ ...localStorage })")
        assert found.problems == []


async def test_the_app_opens_without_a_network(browser: Browser, running: Platform) -> None:
    """Once it was opened, the app opens without a network and says that Trunkline is not reached. The browser keeps the
    app's files only, and nothing that was asked or answered."""
    async with visit(browser, running.url, running.token) as found:
        page = await found.open()
        await page.evaluate("navigator.serviceWorker.ready")
        await page.reload()
        await expect(page.get_by_label("Message", exact=True)).to_be_visible()
        kept = await page.evaluate(
            """async () => (await Promise.all((await caches.keys()).map(async (name) =>
            (await (await caches.open(name)).keys()).map((one) => new URL(one.url).pathname)))).flat()"""
        )
        assert kept and all(path == "/" or path.startswith("/assets/") for path in kept)
        await page.context.set_offline(True)
        await page.reload()
        await expect(page.get_by_text("Trunkline is not reached")).to_be_visible()
