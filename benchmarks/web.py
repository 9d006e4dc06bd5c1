"""``python -m benchmarks.web``: the web app in Chromium, on a platform in this process.

The first screen: bytes that are loaded, first paint, and the time until a message can be typed. A long conversation:
its opening, and scrolling through it. A stream: prose, a long block of code and a long table, each for a third of the
time. Of the stream and the scrolling it says how long the page showed no new picture, and what the page itself took for
it. The platform, the browser and this program share the machine, so the figures are those of a laptop that does all of
it.
"""

import argparse
import json
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from time import perf_counter

import anyio
import httpx
from playwright.async_api import Browser, Page, async_playwright

import trunkline
from benchmarks import machine
from benchmarks.figures import table
from benchmarks.frames import recorded
from trunkline.api.model import Finish, ModelEvent, ModelRequest, Text
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")

PROSE = (
    "growing ",
    "**beans** ",
    "in `may`, ",
    "three ",
    "centimetres ",
    "deep.\n\n",
    "- water ",
    "daily\n",
    "and ",
)
CODE = (
    "def ",
    "grow(bed",
    ": Bed) ",
    "-> int:\n",
    '    """Poles',
    " of a ",
    'bed."""\n',
    "    return ",
    "bed.width",
    " // 40\n\n\n",
)
TABLE = ("| beans ", "| **mid-May** ", "| 3 cm ", "|\n")

Figures = Mapping[str, float]


def words(count: int) -> Iterator[str]:
    """So many pieces of an answer: a third prose and lists, a third one block of code, a third one table."""
    third = count // 3
    for number in range(count - 2 * third):
        yield PROSE[number % len(PROSE)]
    yield "\n\n```python\n"
    for number in range(third):
        yield CODE[number % len(CODE)]
    yield "\n```\n\n| plant | sow | depth |\n|---|---|---|\n"
    for number in range(third):
        yield TABLE[number % len(TABLE)]


class Writer(ScriptedModel):
    """Writes as many words as the message says, at a hundred a second."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the words."""
        for word in words(int(request.messages[-1].content.rpartition(" ")[2])):
            yield Text(word)
            await anyio.sleep(0.01)
        yield Finish(reason="stop")


class WriterPlugin:
    """A plugin with the writer."""

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        """The only model."""
        return [Writer()]


NOTE_FIELD = """new MutationObserver((_, observer) => {
  if (document.querySelector("textarea") === null) return;
  window.fieldAt = performance.now();
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });"""
"""Notes when a message can be typed. Soon afterwards the page loads what is not needed for that."""

LOADED = """performance.getEntriesByType("resource")
  .filter((one) => one.startTime < window.fieldAt).map((one) => one.encodedBodySize)"""

ENDED = ".turn-actions"
"""What is below a turn that is over. To find it by its role would take the page much longer than what is measured."""

SCROLL = """async () => {
  const list = document.querySelector(".turns");
  for (let at = list.scrollHeight; at > 0; at -= 2000) {
    list.scrollTop = at;
    await new Promise(requestAnimationFrame);
  }
}"""
"""Scrolls a conversation from its end to its beginning, 2 000 pixels for each picture."""


async def measure(messages: int, seconds: int) -> Figures:
    """Return the figures by name."""
    config = {"runtime.provider_adapter": "scripted"}
    async with platform(plugins=[WriterPlugin()], config=config) as running, async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(ARGUMENTS)
        )
        context = await browser.new_context(extra_http_headers={"authorization": f"Bearer {running.token}"})
        page = await context.new_page()
        found = {**await _first_screen(page, running.url), **await _stream(browser, page, seconds)}
        if messages:
            found |= await _long_conversation(browser, page, running, messages)
        await browser.close()
    return found


async def _first_screen(page: Page, url: str) -> Figures:
    await page.add_init_script(NOTE_FIELD)
    await page.goto(url)
    await page.get_by_label("Message", exact=True).wait_for()
    loaded = await page.evaluate(LOADED)
    painted = await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return {
        "first_screen_kB": sum(loaded) / 1000,
        "first_paint_ms": painted,
        "can_type_ms": await page.evaluate("window.fieldAt"),
    }


async def _stream(browser: Browser, page: Page, seconds: int) -> Figures:
    await page.get_by_label("Message", exact=True).fill(f"write {seconds * 100}")
    async with recorded(browser, page) as figures:
        await page.keyboard.press("Enter")
        await page.locator(ENDED).wait_for(timeout=(seconds * 3 + 60) * 1000)
    return figures.named("stream")


async def _long_conversation(browser: Browser, page: Page, running: Platform, messages: int) -> Figures:
    asked = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"**Message** {n}."}
        for n in range(messages - 1)
    ]
    asked.append({"role": "user", "content": "write 1"})
    headers = {"authorization": f"Bearer {running.token}"}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=600) as client:
        body = {"model": "main", "messages": asked}
        conversation = (await client.post("/v1/chat/completions", json=body)).headers["x-conversation-id"]
    began = perf_counter()
    await page.goto(f"{running.url}/#/chat/{conversation}")
    await page.reload()
    await page.locator(ENDED).last.wait_for(timeout=120_000)
    opened = perf_counter() - began
    async with recorded(browser, page) as figures:
        await page.evaluate(SCROLL)
    return {"open_long_ms": opened * 1000, **figures.named("scroll")}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.web", description="Measure the web app in Chromium."
    )
    parser.add_argument(
        "--messages", type=int, default=5_000, help="of the long conversation (5000); 0 leaves it out"
    )
    parser.add_argument("--seconds", type=int, default=60, help="of the stream (60)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args()

    figures = anyio.run(measure, given.messages, given.seconds)
    if given.json:
        print(json.dumps(figures))
        return
    print(machine.describe_machine())
    print(table(("figure", "value"), [(name, f"{value:.4g}") for name, value in figures.items()]))


if __name__ == "__main__":
    main()
