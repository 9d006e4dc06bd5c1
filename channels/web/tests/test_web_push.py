"""Push notices in a real browser: what the page says and does, and what the service worker shows.

The service of Chromium's vendor is not asked: it would need the internet and a Chromium with the keys of its maker. A
subscription of these tests is at an address of the internet to which nothing is sent.
"""

import json
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from trunkline.testing.platform import Platform

from .conftest import visit
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


async def pushed(page: Page, url: str, content: str) -> list[str]:
    """Deliver a message to the service worker as the browser does, and return the texts that are shown."""
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
    await page.wait_for_timeout(500)
    shown: list[str] = await page.evaluate(
        "async () => (await (await navigator.serviceWorker.ready).getNotifications()).map((one) => one.body)"
    )
    return shown
