"""A file that an agent gives to the person is downloaded in the web app's chat."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from trunkline.contracts.auth.client import AuthClient
from trunkline.testing.platform import Platform

from .conftest import visit
from .test_chat import send_raw
from .test_pages import PHONE, axe, check_page

__all__ = ["axe"]

pytestmark = pytest.mark.anyio

TABLE = "a,b\n1,2\n" * 30_000


async def test_a_given_file_is_downloaded(
    browser: Browser, running: Platform, axe: str, tmp_path: Path
) -> None:
    """The link below the call has the name and the size, and the whole file arrives; a reload and a fork show it, too.
    The browser is signed in by its cookie, because the request of a download has no other credential.
    """
    workspace = running.home.workspace("main")
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "plan.csv").write_text(TABLE)
    async with visit(browser, running.url, **PHONE) as found:
        page = found.page
        await page.goto(f"{running.url}/pair#{(await AuthClient(running.bus).start_pairing()).code}")
        await expect(page.get_by_label("Message", exact=True)).to_be_visible()
        await send_raw(page, 'call:send_file {"path": "plan.csv"} ;; say:Here it is.')
        link = page.get_by_role("link", name="Download plan.csv (240 kB)")
        await expect(link).to_be_visible(timeout=60_000)
        await expect(page.locator(".answer", has_text="Here it is.")).to_be_visible()
        await check_page(page, axe)
        async with page.expect_download() as started:
            await link.click()
        saved = tmp_path / "saved"
        await (await started.value).save_as(saved)
        assert (await started.value).suggested_filename == "plan.csv" and saved.read_text() == TABLE
        await page.reload()
        await expect(link).to_be_visible(timeout=60_000)
        await send_raw(page, "say:one")
        await expect(page.get_by_role("button", name="Ask again")).to_have_count(2)
        before = page.url
        await page.get_by_role("button", name="Ask again").last.click()
        await expect(page.get_by_role("group", name="Branch 2 of 2")).to_be_visible()
        assert page.url != before
        async with page.expect_download() as again:
            await link.click()
        await (await again.value).save_as(saved)
        assert saved.read_text() == TABLE
        assert found.problems == []
