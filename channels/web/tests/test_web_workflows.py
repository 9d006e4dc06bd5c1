"""The workflows in the web app: a proposal is installed, a run is begun, approved and read."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, expect

from plugins.workflow.tests.workflow_tools import DEPLOY_APP, SETTINGS, EffectPlugin
from trunkline.api.memory import MEMORY_WRITE_MANY, WriteManyMemory
from trunkline.testing.platform import Platform, platform

from .conftest import Scripted, visit
from .test_pages import DARK, PHONE, axe, check_page

__all__ = ["axe"]

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    config = {"runtime.provider_adapter": "scripted", **SETTINGS}
    home = tmp_path_factory.mktemp("home")
    async with platform(home, plugins=[Scripted(), EffectPlugin()], config=config) as started:
        yield started


async def test_a_proposal_becomes_a_run_that_is_approved(
    browser: Browser, running: Platform, axe: str
) -> None:
    """The owner sees the exact text before it is installed, gives the inputs, follows the steps and decides. A wrong
    file says what is wrong, and axe finds nothing on the way."""
    files = {
        "workflow-proposals/deploy-app.yaml": DEPLOY_APP,
        "workflows/wrong.yaml": "name: wrong\nsteps: []\n",
    }
    request = WriteManyMemory(
        files={f"blocks/main/{path}": text for path, text in files.items()}, actor="owner"
    )
    await running.bus.call(MEMORY_WRITE_MANY, request, timeout=20.0)
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open()
        await page.get_by_role("link", name="Workflows").click()
        wrong = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="wrong"))
        await expect(wrong.get_by_text("must be corrected")).to_be_visible()
        await page.get_by_role("button", name="Install").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text('message: "Deploy {{ url }}?"')
        await check_page(page, axe)
        await dialog.get_by_role("button", name="Install").click()
        deploy = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="deploy-app"))
        await expect(deploy.get_by_text("checked")).to_be_visible()
        await deploy.get_by_role("button", name="Run").click()
        await page.get_by_label("version").fill("1.10")
        await page.get_by_role("button", name="Begin").click()
        await page.get_by_role("link", name="A run begins.").click()
        await expect(page.get_by_text("Deploy http://app/1.1?")).to_be_visible(timeout=60_000)
        await expect(page.locator(".steps > li[data-state=waiting_approval]")).to_contain_text("Review")
        await check_page(page, axe)
        await page.get_by_role("button", name="Allow").click()
        await expect(page.locator("h2 .badge")).to_have_text("completed", timeout=60_000)
        await page.get_by_text("3 calls").click()
        await check_page(page, axe)
        assert found.problems == []
    async with visit(browser, running.url, running.token, locale="de-DE", **DARK) as found:
        page = await found.open("#/workflows/main")
        await page.get_by_role("button", name="Ausführen").click()
        await page.get_by_label("version").fill('"2.0"')
        await page.get_by_role("button", name="Beginnen").click()
        await page.get_by_role("link", name="Ein Lauf beginnt.").click()
        await expect(page.locator("h2 .badge")).to_have_text("wartet auf dich", timeout=60_000)
        await page.get_by_role("button", name="Lauf beenden").click()
        await page.get_by_role("dialog").get_by_role("button", name="Lauf beenden").click()
        await expect(page.locator("h2 .badge")).to_have_text("abgebrochen", timeout=60_000)
        await check_page(page, axe)
        assert found.problems == []
