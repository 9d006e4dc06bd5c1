"""Chromium on a platform with a scripted model. Without Chromium or a built app the tests are skipped."""

import os
import re
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import psutil
import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

import trunkline
from trunkline.api.gateway import Locale
from trunkline.api.model import Finish, ModelEvent, ModelRequest, Text
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline_web_app.plugin import FOLDER

expect.set_options(timeout=30_000)  # a busy machine is no failure

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
"""Chromium would otherwise look up its maker's servers. Its own sandbox cannot run as root."""

CLOSE_SECONDS = 10.0
"""Seconds that a page or the browser may take to close; a browser that does not answer any more is killed."""

EXPECTED = re.compile("Failed to load resource|WebSocket connection to .* failed")
"""What Chromium reports of a refused request and of a gateway that is away. The page shows both in its own words."""


class PageModel(ScriptedModel):
    """A model that does what the message says, and repeats what follows ``raw:``."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the reply."""
        content = request.messages[-1].content
        if content.startswith("raw:"):
            yield Text(content.removeprefix("raw:"))
            yield Finish(reason="stop")
            return
        async for event in super().stream(request):
            yield event


@trunkline.tool(effect="read")
def clock() -> str:
    """The time of this call."""
    return f"clock {time.time():.4f}"


ESPERANTO = {"session.title": "Ensaluti", "nav.blocks": "Blokoj", "nav.signOut": "Elsaluti {nomo}"}
"""A language with few texts, one of which has a placeholder that the English one does not have."""


class Scripted:
    """A plugin with the model, a tool and a language."""

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        return [PageModel()]

    @trunkline.hookimpl
    def trunkline_locales(self) -> list[Locale]:
        return [Locale("eo", "Esperanto", ESPERANTO)]

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        return [clock]


SETTINGS = {"runtime.provider_adapter": "scripted", "permissions.approvals": "some"}


@dataclass
class Visit:
    """A page of the app, and what must not happen on it: errors, and requests to any other host."""

    page: Page
    url: str
    problems: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Begin to record."""
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on(
            "console",
            lambda line: (
                self.problems.append(line.text)
                if line.type == "error" and not EXPECTED.match(line.text)
                else None
            ),
        )
        self.page.on("request", lambda request: self._note_host(request.url))

    def _note_host(self, address: str) -> None:
        found = urlsplit(address)
        if found.scheme in ("http", "https", "ws", "wss") and found.netloc != urlsplit(self.url).netloc:
            self.problems.append(f"a request to {address}")

    async def open(self, address: str = "") -> Page:
        """Go to an address of the app, such as ``#/blocks``."""
        await self.page.goto(f"{self.url}/{address}")
        return self.page


@pytest.fixture(scope="module")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    """Debian's Chromium."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium (apt-get install chromium)")
    if not (FOLDER / "site/index.html").is_file():
        pytest.skip("the web app is not built (scripts/setup app says why)")
    others = psutil.Process().children()
    playwright = await async_playwright().start()
    drivers = [one for one in psutil.Process().children() if one not in others]
    try:
        yield await playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
    finally:
        own = [process for one in drivers for process in (one, *one.children(recursive=True))]
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await playwright.stop()
        for process in own:
            with suppress(psutil.NoSuchProcess):
                process.kill()


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    """A platform for the tests of a module."""
    home = tmp_path_factory.mktemp("home")
    async with platform(home, plugins=[Scripted()], config=SETTINGS) as started:
        yield started


@asynccontextmanager
async def visit(
    browser: Browser, url: str, token: str = "", *, locale: str = "en-GB", **options: object
) -> AsyncIterator[Visit]:
    """A page in a context of its own, signed in by the token, of a browser that prefers a language."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    context = await browser.new_context(extra_http_headers=headers, locale=locale, **options)  # type: ignore[arg-type]
    context.set_default_timeout(20_000)
    found = Visit(await context.new_page(), url)
    found.watch()
    try:
        yield found
    finally:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            if folder := os.environ.get(
                "TRUNKLINE_SCREENSHOTS"
            ):  # for whoever looks for the reason of a failure
                await found.page.screenshot(path=str(Path(folder, f"{id(found)}.png")))
            await context.close()


@pytest.fixture
async def signed_in(browser: Browser, running: Platform) -> AsyncIterator[Visit]:
    """A page of the owner. Nothing may have gone wrong on it when the test ends."""
    async with visit(browser, running.url, running.token) as found:
        yield found
        assert found.problems == []
