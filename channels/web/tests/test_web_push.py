"""Push notices in a real browser: what the page says and does, and what the service worker shows.

The service of Chromium's vendor is not asked: it would need the internet and a Chromium with the keys of its maker. A
subscription of these tests is at an address of the internet to which nothing is sent.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Browser, Page, expect

from trunkline.testing.platform import Platform

from .conftest import CHROMIUM, CLOSE_SECONDS, QUIET, visit
from .notification_server import DAEMON, notification_server
from .test_pages import PHONE, axe, check_page
from .test_web_passkeys import open_account, pair

__all__ = ["axe"]

pytestmark = pytest.mark.anyio

VENDOR = """
const keys = {
  p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
  auth: "BTBZMqHH6r4Tts7J_aSIgg",
};
PushManager.prototype.getSubscription = async () => null;
PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
  if (applicationServerKey.length !== 87 || !userVisibleOnly) throw new Error("not the key of a gateway");
  return { toJSON: () => ({ endpoint: "https://8.8.8.8/send/x", keys }), unsubscribe: async () => true };
};
Notification.requestPermission = async () => "granted";
"""
"""A browser whose vendor has given it an address; the key is that of an example in RFC 8291."""


async def test_notices_are_turned_on_and_off(browser: Browser, running: Platform, axe: str) -> None:
    """The page names the vendor before anything is asked. A browser is listed, until it is turned off."""
    url = running.url.replace("127.0.0.1", "localhost")
    async with visit(browser, url, **PHONE) as found:
        page = await found.open()
        await page.context.add_init_script(VENDOR)
        await page.reload()
        await pair(page, running)
        await open_account(page)
        await expect(page.get_by_text("such as Google, Mozilla or Apple")).to_be_visible()
        await expect(page.get_by_text("No browser gets notices.")).to_be_visible()
        await page.get_by_label("Name of this browser").fill("my phone")
        await page.get_by_role("button", name="Turn notices on").click()
        card = page.get_by_role("listitem").filter(has_text="my phone")
        await expect(card.get_by_text("by 8.8.8.8")).to_be_visible()
        await check_page(page, axe)
        await card.get_by_role("button", name="Turn off").click()
        await expect(page.get_by_text("No browser gets notices.")).to_be_visible()
        assert found.problems == []


async def test_a_person_who_refuses_gets_no_notices(browser: Browser, running: Platform) -> None:
    """If the browser may not show notices, the page says what to do, and nobody is subscribed."""
    url = running.url.replace("127.0.0.1", "localhost")
    async with visit(browser, url) as found:
        page = await found.open()
        await page.context.add_init_script(
            f"{VENDOR}; Notification.requestPermission = async () => 'denied';"
        )
        await page.reload()
        await pair(page, running)
        await open_account(page)
        await page.get_by_label("Name of this browser").fill("nobody")
        await page.get_by_role("button", name="Turn notices on").click()
        await expect(page.get_by_text("does not let this page show notices")).to_be_visible()
        await expect(page.get_by_text("No browser gets notices.")).to_be_visible()


async def test_the_service_worker_shows_what_was_pushed(browser: Browser, running: Platform) -> None:
    """A notice has the block's name in the chosen language; one that cannot be read is shown, too."""
    url = running.url.replace("127.0.0.1", "localhost")
    async with visit(browser, url, running.token) as found:
        page = await found.open()
        await page.context.grant_permissions(["notifications"], origin=url)
        one = {"language": "de", "count": 1, "approval": "k3v7q-x2pzd", "block": "garden"}
        assert await pushed(page, url, json.dumps(one)) == ["Der Block garden bittet um deine Erlaubnis."]
        assert "2 calls wait for your approval." in await pushed(page, url, json.dumps({"count": 2}))
        assert "1 calls wait for your approval." in await pushed(page, url, "no JSON")


async def test_a_click_on_a_notice_leads_to_the_approvals(
    browser: Browser, running: Platform, tmp_path: Path
) -> None:
    """In the page that is open, which comes to the front, and in a new one if none is open. What was typed stays."""
    if DAEMON is None:
        pytest.skip("there is no dbus-daemon (apt-get install dbus-daemon)")
    url, approvals = running.url.replace("127.0.0.1", "localhost"), re.compile(r"/#/approvals$")
    async with notification_server() as desktop:
        # Chromium leads a click to a profile, and the contexts of Playwright's browsers have none
        context = await browser.browser_type.launch_persistent_context(
            tmp_path / "profile", executable_path=CHROMIUM, args=[*QUIET, "--password-store=basic"],
            env={**os.environ, "DBUS_SESSION_BUS_ADDRESS": desktop.address},
            extra_http_headers={"authorization": f"Bearer {running.token}"}, locale="en-GB",
        )  # fmt: skip
        try:
            page = context.pages[0]
            await page.goto(url)
            await context.grant_permissions(["notifications"], origin=url)
            await page.get_by_label("Message", exact=True).fill("half a sentence")
            await deliver(page, url, json.dumps({"count": 1, "approval": "k3v7q-x2pzd", "block": "garden"}))
            await desktop.click("The block garden asks for your approval.")
            await expect(page).to_have_url(approvals)
            await page.get_by_role("link", name="Chat", exact=True).click()
            await expect(page.get_by_label("Message", exact=True)).to_have_value("half a sentence")
            await deliver(page, url, json.dumps({"count": 2}))
            async with context.expect_page() as opened:
                await page.goto("about:blank")
                await desktop.click("2 calls wait for your approval.")
            await expect(await opened.value).to_have_url(approvals)
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await context.close()


async def deliver(page: Page, url: str, content: str) -> None:
    """Deliver a message to the service worker as the browser does."""
    await page.evaluate("navigator.serviceWorker.ready")
    session = await page.context.new_cdp_session(page)
    versions: list[dict[str, Any]] = []
    session.on(
        "ServiceWorker.workerRegistrationUpdated", lambda event: versions.extend(event["registrations"])
    )
    await session.send("ServiceWorker.enable")
    await page.wait_for_timeout(200)
    message = {"origin": url, "registrationId": versions[-1]["registrationId"], "data": content}
    await session.send("ServiceWorker.deliverPushMessage", message)


async def pushed(page: Page, url: str, content: str) -> list[str]:
    """Deliver a message to the service worker, and return the texts that are shown."""
    await deliver(page, url, content)
    await page.wait_for_timeout(500)
    shown: list[str] = await page.evaluate(
        "async () => (await (await navigator.serviceWorker.ready).getNotifications()).map((one) => one.body)"
    )
    return shown
