"""The pictures of the documentation, taken from a conversation that runs. ``TRUNKLINE_WEB_PICTURES=docs/images`` before
the command replaces them."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

import trunkline
from trunkline.api.model import Call, Reasoning
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel

from .conftest import SETTINGS, visit
from .test_chat import send_raw

pytestmark = pytest.mark.anyio

PLAN = """Beans like warm soil. A plan for your bed of **4 m²**:

| when | what |
|---|---|
| mid-May | sow, 3 cm deep, six seeds to a pole |
| June | mulch, and water twice a week |
| August | harvest while the pods are young |

```python
seeds = poles * 6  # four poles need 24 seeds
```
"""

CALL = trunkline.ToolCall(
    id="call_1",
    name="write_file",
    arguments={"path": "notes/beans.md", "content": "# Beans\n\nSow 24 seeds in mid-May.\n"},
)

STORY = (
    PLAN,
    [Reasoning("A note belongs into the notes."), "I write it down.", Call(CALL)],
    "It is in your notes.",
)

SIZES = {"wide": {"width": 1100, "height": 720}, "phone": {"width": 390, "height": 760}}


class Gardener:
    """A plugin with a model that tells the story."""

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        return [ScriptedModel(list(STORY))]


@pytest.fixture
async def garden(tmp_path: Path) -> AsyncIterator[Platform]:
    async with platform(tmp_path / "home", plugins=[Gardener()], config=SETTINGS) as started:
        yield started


async def test_the_pictures_show_a_conversation(browser: Browser, garden: Platform, tmp_path: Path) -> None:
    """An answer with a table and code, and a call that waits with its diff, on a wide screen and on a phone; and the
    trace of the turn."""
    folder = Path(os.environ.get("TRUNKLINE_WEB_PICTURES", str(tmp_path)))
    async with visit(browser, garden.url, garden.token, viewport=SIZES["wide"]) as found:
        page = await found.open()
        await send_raw(page, "How do I grow runner beans?")
        await expect(page.get_by_role("button", name="Ask again")).to_be_visible()
        await send_raw(page, "Please note when to sow.")
        await expect(page.get_by_role("button", name="Allow", exact=True)).to_be_visible()
        for name, size in SIZES.items():
            await page.set_viewport_size(size)  # type: ignore[arg-type]
            await page.locator(".turns").evaluate("(list) => { list.scrollTop = list.scrollHeight; }")
            await expect(page.get_by_role("button", name="Deny")).to_be_in_viewport()
            picture = await page.screenshot(path=str(folder / f"web-{name}.png"))
            assert len(picture) < 150_000
        await page.get_by_role("button", name="Allow", exact=True).click()
        await expect(page.get_by_text("It is in your notes.")).to_be_visible()
        await page.set_viewport_size(SIZES["wide"])  # type: ignore[arg-type]
        traces = page.get_by_role("link", name="Trace")
        await expect(traces).to_have_count(2)  # that of this turn is there once it has ended
        await traces.last.click()
        again = page.get_by_role("button", name="Read again")
        while not await page.locator(
            ".trace li", has_text="write_file"
        ).count():  # spans are stored when they end
            await again.click()
            await page.wait_for_timeout(200)
        assert len(await page.screenshot(path=str(folder / "web-trace.png"))) < 150_000
        assert found.problems == []
