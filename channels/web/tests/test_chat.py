"""The chat in a real browser: streaming, tools, approvals, reloads, and a gateway that dies."""

import re

import pytest
from playwright.async_api import Browser, Page, expect

from trunkline.testing.platform import Platform

from .conftest import Visit, visit

pytestmark = pytest.mark.anyio

MARKDOWN = """raw:# Beans

| seed | cm |
|---|---|
| bean | 3 |

```python
def grow(): return "tall"
```

[docs](https://example.com) <b onclick=alert(1)>not bold</b> ![tracker](https://example.com/p.png)
[bad](javascript:alert(1))"""


async def send(page: Page, text: str) -> None:
    """Type a message and send it."""
    await page.get_by_label("Message", exact=True).fill(text)
    await page.keyboard.press("Enter")


async def test_an_answer_streams_and_is_kept(signed_in: Visit) -> None:
    """The text grows while it arrives; the conversation gets an address, and is in the list."""
    page = await signed_in.open()
    await send(page, "slow:30:40")
    await expect(page.get_by_text("word-2 ")).to_be_visible()
    assert await page.get_by_text("word-30").count() == 0
    await expect(page.get_by_role("button", name="Stop")).to_be_visible()
    await expect(page.get_by_text("word-30")).to_be_visible()
    await expect(page.get_by_role("button", name="Ask again")).to_be_visible()
    assert re.search(r"#/chat/conv_", page.url)
    await expect(page.get_by_role("complementary").get_by_role("link", name="slow:30:40")).to_be_visible()


async def test_markdown_is_rendered_and_made_safe(signed_in: Visit) -> None:
    """Tables and code are rendered; HTML is text, a foreign picture is not loaded, and a script's link is none."""
    page = await signed_in.open()
    await send_raw(page, MARKDOWN)
    await expect(page.get_by_role("cell", name="bean")).to_be_visible()
    await expect(page.locator(".hljs-keyword", has_text="def")).to_be_visible()
    await expect(page.get_by_role("link", name="docs")).to_have_attribute("rel", re.compile("noopener"))
    assert await page.get_by_role("link", name="bad").count() == 0
    assert await page.locator("main img").count() == 0
    assert await page.locator("main b").count() == 0
    await expect(page.locator(".answer").get_by_text("<b onclick=alert(1)>")).to_be_visible()


async def test_marks_of_direction_are_shown_and_not_obeyed(signed_in: Visit) -> None:
    """A text with such marks would read as another text: in an answer, and in the arguments and result of a call."""
    page = await signed_in.open()
    await send(page, "raw:open \u202egpj.exe and `x \u2066y`")
    await expect(page.locator(".markdown", has_text="open \ufffdgpj.exe and x \ufffdy")).to_be_visible()
    await send(page, 'call:memory_read {"path": "MEM\u202edm.exe"}')
    card = page.locator(".tool", has_text="memory_read")
    await card.locator("summary").click()
    await expect(card.get_by_role("heading", name="Result")).to_be_visible()
    assert "MEM\ufffddm.exe" in await card.inner_text() and "\u202e" not in await card.inner_text()


async def send_raw(page: Page, text: str) -> None:
    """Send lines as one message."""
    await page.get_by_label("Message", exact=True).fill(text)
    await page.get_by_role("button", name="Send").click()


async def test_a_call_is_approved_in_place(signed_in: Visit, running: Platform) -> None:
    """The diff is shown; nothing happens before the decision; then the card has the result and its duration."""
    page = await signed_in.open()
    await send(page, 'call:write_file {"path": "beans.md", "content": "Sow in May."} ;; say:Written.')
    question = page.get_by_role("group", name=re.compile("write_file"))
    await expect(question.locator(".diff-added", has_text="Sow in May.")).to_be_visible()
    file = running.home.workspaces / "main" / "beans.md"
    assert not file.exists()
    await question.get_by_role("button", name="Allow").click()
    await expect(page.locator(".markdown", has_text="Written.")).to_be_visible()
    assert file.read_text() == "Sow in May."
    card = page.locator(".tool", has_text="write_file")
    await card.locator("summary").click()
    await expect(card.get_by_role("heading", name="Result")).to_be_visible()
    await expect(card.get_by_text("Allowed by owner.")).to_be_visible()


async def test_a_reload_in_mid_stream_leaves_no_gap(signed_in: Visit) -> None:
    """After a reload the text is whole, each word once, and a draft is still in its field."""
    page = await signed_in.open()
    await send(page, "slow:60:40")
    await expect(page.get_by_text("word-5 ")).to_be_visible()
    await page.get_by_label("Message", exact=True).fill("not sent yet")
    await page.reload()
    await expect(page.get_by_label("Message", exact=True)).to_have_value("not sent yet")
    await expect(page.get_by_text("word-60")).to_be_visible()
    text = await page.locator(".answer").inner_text()
    assert re.findall(r"word-(\d+)", text) == [str(number) for number in range(1, 61)]


async def test_a_turn_is_stopped(signed_in: Visit) -> None:
    """Stop ends the turn; what was written stays."""
    page = await signed_in.open()
    await send(page, "slow:200:50")
    await expect(page.get_by_text("word-3 ")).to_be_visible()
    await page.get_by_role("button", name="Stop").click()
    await expect(page.get_by_text("This turn was cancelled.")).to_be_visible()
    await expect(page.get_by_text("word-3 ")).to_be_visible()


async def test_two_windows_show_the_same_turn(browser: Browser, running: Platform) -> None:
    """A second window on the conversation shows the message and its answer while it arrives."""
    async with visit(browser, running.url, running.token) as first:
        page = await first.open()
        await send(page, "say:first")
        await expect(page.get_by_role("button", name="Ask again")).to_be_visible()
        other = await page.context.new_page()
        await other.goto(page.url)
        await expect(other.get_by_text("first", exact=True)).to_be_visible()
        await send(page, "slow:40:40")
        await expect(other.get_by_text("word-3 ")).to_be_visible()
        await expect(other.get_by_text("word-40")).to_be_visible()
        assert first.problems == []


async def test_a_conversation_is_renamed_and_found(signed_in: Visit) -> None:
    """A new name is in the list and the head; the search finds the conversation by it."""
    page = await signed_in.open()
    await send(page, "say:about turnips")
    await expect(page.get_by_role("button", name="Ask again")).to_be_visible()
    await choose(page, "say:about turnips", "Rename")
    await page.get_by_role("textbox", name="Name of the conversation").fill("Root vegetables")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name="Root vegetables")).to_be_visible()
    await page.get_by_role("searchbox").fill("vegetables")
    await expect(
        page.get_by_role("complementary").get_by_role("link", name="Root vegetables")
    ).to_be_visible()


async def choose(page: Page, title: str, action: str) -> None:
    """Choose an action from the menu of a conversation in the list."""
    await page.get_by_role("button", name=f"Actions for “{title}”").click()
    await page.get_by_role("menuitem", name=action, exact=True).click()


async def test_a_conversation_is_pinned_archived_and_saved(signed_in: Visit) -> None:
    """A pin stands above the others, also after a reload. An archived conversation leaves the list, is found by the
    search and in the archive, and is put back. The file has the whole conversation."""
    page = await signed_in.open()
    listed = page.get_by_role("complementary")
    await send(page, "say:about parsnips")
    await expect(page.get_by_role("button", name="Ask again")).to_be_visible()
    await choose(page, "say:about parsnips", "Pin")
    pinned = listed.get_by_role("region", name="Pinned").get_by_role("link", name="say:about parsnips")
    await expect(pinned).to_be_visible()
    await page.reload()
    await expect(pinned).to_be_visible()
    async with page.expect_download() as download:
        await choose(page, "say:about parsnips", "Save as Markdown")
    saved = await download.value
    assert saved.suggested_filename.endswith(".md")
    assert "about parsnips" in (await saved.path()).read_text()
    await choose(page, "say:about parsnips", "Archive")
    link = listed.get_by_role("link", name="say:about parsnips")
    await expect(link).to_have_count(0)
    await page.get_by_role("searchbox").fill("parsnips")
    await expect(listed.get_by_text("archived", exact=False).first).to_be_visible()
    await expect(link).to_be_visible()
    await page.get_by_role("searchbox").fill("")
    await expect(link).to_have_count(0)
    await page.get_by_role("button", name="Archived conversations").click()
    await expect(link).to_be_visible()
    await choose(page, "say:about parsnips", "Put back on the list")
    await expect(link).to_have_count(0)
    await page.get_by_role("button", name="Archived conversations").click()
    await expect(pinned).to_be_visible()


async def test_branches_are_stepped_through(signed_in: Visit) -> None:
    """A changed message is answered in a new conversation, below what came before it, and the first one stays. Both
    places say so and lead to each other, after a reload and by keyboard, too; the answer that was asked for again is a
    third one."""
    page = await signed_in.open()
    await send(page, "say:before")
    await expect(page.get_by_role("button", name="Ask again")).to_have_count(1)
    await send(page, "say:one")
    await expect(page.get_by_role("button", name="Ask again")).to_have_count(2)
    before = page.url
    await page.get_by_role("button", name="Edit").last.click()
    await page.get_by_role("dialog").get_by_label("Message").fill("say:two")
    await page.get_by_role("dialog").get_by_role("button", name="Send").click()
    await expect(page.locator(".answer", has_text="two")).to_be_visible()
    assert page.url != before
    questions = page.locator(".question p")
    await expect(page.get_by_role("group", name="Branch 2 of 2")).to_be_visible()
    await expect(questions).to_have_text(["say:before", "say:two"])
    await page.reload()
    await page.get_by_role("button", name="Branch before").click()
    await expect(page.get_by_role("group", name="Branch 1 of 2")).to_be_focused()
    await expect(questions).to_have_text(["say:before", "say:one"])
    assert page.url.startswith(before)
    await page.get_by_role("button", name="Ask again").last.click()
    await expect(page.get_by_role("group", name="Branch 3 of 3")).to_be_visible()
    await page.reload()
    third = page.get_by_role("group", name="Branch 3 of 3")
    await third.get_by_role("button", name="Branch before").focus()
    await page.keyboard.press("ArrowLeft")
    await expect(page.get_by_role("group", name="Branch 2 of 3")).to_be_focused()
    await expect(questions).to_have_text(["say:before", "say:two"])
    await page.keyboard.press("ArrowRight")
    await expect(third).to_be_focused()
    await expect(questions).to_have_text(["say:before", "say:one"])
    await expect(page.get_by_role("button", name="Next branch")).to_be_disabled()


async def test_reasoning_is_folded(signed_in: Visit) -> None:
    """What a model discloses of its reasoning can be unfolded, and is not part of the answer."""
    page = await signed_in.open()
    await send(page, "think:beans need water ;; say:Water them.")
    await expect(page.locator(".markdown", has_text="Water them.")).to_be_visible()
    await expect(page.locator(".thought p")).to_be_hidden()
    await page.locator(".thought summary").click()
    await expect(page.locator(".thought p")).to_have_text("beans need water")


async def test_a_turn_of_another_channel_is_shown_live(signed_in: Visit, running: Platform) -> None:
    """A message that another channel sends into the open conversation appears with its answer while it arrives."""
    accepted = await running.send("say:begun elsewhere")
    await running.answer(accepted)
    page = await signed_in.open(f"#/chat/{accepted.conversation}")
    await expect(page.locator(".markdown", has_text="begun elsewhere")).to_be_visible()
    await running.send("slow:60:50", conversation=accepted.conversation)
    await expect(page.get_by_text("word-3 ")).to_be_visible()
    await expect(page.locator(".question", has_text="slow:60:50")).to_be_visible()
    assert await page.get_by_text("word-60").count() == 0


async def test_a_running_turn_is_steered(signed_in: Visit) -> None:
    """A message that is sent into the running turn is shown in it, and answered by it."""
    page = await signed_in.open()
    await send(page, "slow:30:50 ;; call:list_skills {} ;; quote")
    await expect(page.get_by_text("word-3 ")).to_be_visible()
    await page.get_by_label("Message", exact=True).fill("say:steered")
    await page.get_by_role("button", name="Steer").click()
    await expect(page.locator(".steer", has_text="say:steered")).to_be_visible()
    await expect(page.get_by_role("button", name="Ask again")).to_be_visible()
    await expect(page.locator(".turn")).to_have_count(1)
