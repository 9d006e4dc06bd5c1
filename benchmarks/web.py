"""``python -m benchmarks.web``: the web app in Chromium, on a platform in this process.

The first screen: bytes that are loaded, first paint, and the time until a message can be typed. A long conversation:
its opening, and scrolling through it. A stream: text for some time, with the longest time between two pictures. The
platform, the browser and this program share the machine, so the figures are those of a laptop that does all of it.
"""

import argparse
import json
import shutil
from collections.abc import AsyncIterator, Mapping
from time import perf_counter

import anyio
import httpx
from playwright.async_api import Page, async_playwright

import trunkline
from benchmarks import machine
from benchmarks.figures import table
from trunkline.api.model import Finish, ModelEvent, ModelRequest, Text
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")

WORDS = (
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

Figures = Mapping[str, float]


class Writer(ScriptedModel):
    """Writes as many words as the message says, at a hundred a second."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the words."""
        count = int(request.messages[-1].content.rpartition(" ")[2])
        for number in range(count):
            yield Text(WORDS[number % len(WORDS)])
            await anyio.sleep(0.01)
        yield Finish(reason="stop")


class WriterPlugin:
    """A plugin with the writer."""

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        """The only model."""
        return [Writer()]


FRAMES = """() => {
  window.longest = 0;
  let last = performance.now();
  const next = (now) => {
    window.longest = Math.max(window.longest, now - last);
    last = now;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}"""
"""Records the longest time between two pictures."""

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
        found = {**await _first_screen(page, running.url), **await _stream(page, seconds)}
        if messages:
            found |= await _long_conversation(page, running, messages)
        await browser.close()
    return found


async def _first_screen(page: Page, url: str) -> Figures:
    began = perf_counter()
    await page.goto(url)
    await page.get_by_label("Message", exact=True).wait_for()
    typed = perf_counter() - began
    loaded = await page.evaluate("performance.getEntriesByType('resource').map((one) => one.encodedBodySize)")
    painted = await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return {"first_screen_kB": sum(loaded) / 1000, "first_paint_ms": painted, "can_type_ms": typed * 1000}


async def _stream(page: Page, seconds: int) -> Figures:
    await page.get_by_label("Message", exact=True).fill(f"write {seconds * 100}")
    await page.evaluate(FRAMES)
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Ask again").wait_for(timeout=(seconds * 3 + 60) * 1000)
    return {"longest_frame_ms": await page.evaluate("window.longest")}


async def _long_conversation(page: Page, running: Platform, messages: int) -> Figures:
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
    await page.get_by_role("button", name="Ask again").last.wait_for(timeout=120_000)
    opened = perf_counter() - began
    await page.evaluate(FRAMES)
    await page.evaluate(SCROLL)
    return {"open_long_ms": opened * 1000, "scroll_longest_frame_ms": await page.evaluate("window.longest")}


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
    print(table(("figure", "value"), [(name, f"{value:.0f}") for name, value in figures.items()]))


if __name__ == "__main__":
    main()
