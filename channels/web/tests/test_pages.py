"""The other pages, and every page by the rules of accessibility, on a phone and in the dark."""

import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from tests.background_tasks import begin_task
from tests.background_turns import in_background
from trunkline.contracts.auth.client import AuthClient
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.memory.chunks import MEMORY_REMEMBER, Remember
from trunkline.contracts.sandbox.detached_program import ExitRecord, OutputFile
from trunkline.contracts.workers.messages import SpanBatch, SpanRecord
from trunkline.contracts.workers.subjects import DEAD_LETTER_TOPIC, SPANS
from trunkline.home.kill_switch import KillSwitch
from trunkline.telemetry import semconv
from trunkline.testing.platform import Platform
from trunkline_bus import DeadLetter, Scope, new_id

from .conftest import Visit, visit
from .test_chat import send, send_raw

pytestmark = pytest.mark.anyio

AXE = Path(sys.prefix, "web-app/node_modules/axe-core/axe.min.js")

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
DARK: dict[str, Any] = {"viewport": {"width": 1200, "height": 800}, "color_scheme": "dark"}

ANSWER = """raw:A [link](https://example.com), `code`, and

```python
x = 1  # one
```

> quoted

| a |
|---|
| b |"""

SCROLLERS = "html, main, .conversation, .turns"
"""The elements that must not be wider than what shows them."""


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core. It is evaluated, not added as an element, which the page's policy forbids."""
    if not AXE.is_file():
        pytest.skip("axe-core is not there (scripts/setup test fetches it)")
    return AXE.read_text()


async def check_page(page: Page, axe: str) -> None:
    """axe finds nothing, and nothing is wider than the window."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(axe)
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [f"{one['id']}: {[node['html'] for node in one['nodes']]}" for one in found["violations"]] == []
    wide = (
        f"[...document.querySelectorAll('{SCROLLERS}')].filter((e) => e.scrollWidth > e.clientWidth).length"
    )
    assert await page.evaluate(wide) == 0


@pytest.mark.parametrize("options", [PHONE, DARK], ids=["phone", "dark"])
async def test_every_page_is_accessible(
    browser: Browser, running: Platform, axe: str, options: dict[str, Any]
) -> None:
    """axe finds nothing on any page, with an answer, an open call and settings on it, and nothing is too wide."""
    async with visit(browser, running.url, running.token, **options) as found:
        page = await found.open()
        await send_raw(page, ANSWER)
        await expect(page.get_by_role("button", name="Ask again")).to_be_visible()
        await send_raw(page, 'call:write_file {"path": "axe.md", "content": "one"}')
        await expect(page.get_by_role("button", name="Allow")).to_be_visible()
        await check_page(page, axe)
        await page.get_by_role("link", name="Approvals").click()
        await expect(page.get_by_role("button", name="Allow").first).to_be_visible()
        await check_page(page, axe)
        await page.get_by_role("link", name="Blocks").click()
        await page.get_by_role("button", name="Settings").first.click()
        await check_page(page, axe)
        await page.get_by_role("link", name="Activity").click()
        await expect(page.get_by_role("heading", name="Activity")).to_be_visible()
        await check_page(page, axe)
        assert found.problems == []
    async with visit(browser, running.url, **options) as found:
        page = await found.open()
        await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        await check_page(page, axe)


async def test_a_phone_shows_the_links_to_all_pages(browser: Browser, running: Platform) -> None:
    """On a phone each link of the navigation, the stop and the menu can be touched without scrolling, in every
    language."""
    async with visit(browser, running.url, running.token, **PHONE) as found:
        for language in ("en", "de"):
            page = await found.open()
            await page.evaluate(
                "(chosen) => localStorage.setItem('trunkline.language', JSON.stringify(chosen))",
                language,
            )
            await page.reload()
            await expect(page.locator("html")).to_have_attribute("lang", language)
            links = page.locator(".navigation nav a")
            await expect(links).to_have_count(7)
            assert await page.evaluate(OUT_OF_REACH) == []


OUT_OF_REACH = """[...document.querySelectorAll('.navigation a, .navigation button')].filter((link) => {
    const box = link.getBoundingClientRect();
    const touched = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return box.left < 0 || box.right > innerWidth || !link.contains(touched);
}).map((link) => link.textContent)"""


async def test_a_phone_has_one_column(browser: Browser, running: Platform) -> None:
    """On a phone the list of conversations opens over the conversation and closes when one is chosen. A call with long
    arguments does not make the conversation wider than the screen."""
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open()
        await send_raw(page, f'call:search_files {{"pattern": "{"beans " * 20}"}} ;; say:on the phone')
        await expect(page.get_by_role("button", name="Ask again")).to_be_visible()
        await expect(page.locator(".tool")).to_be_visible()
        assert await page.locator(".turns").evaluate("(list) => list.scrollWidth <= list.clientWidth")
        listed = page.get_by_role("complementary", name="Conversations")
        await expect(listed).to_be_hidden()
        await page.get_by_role("button", name="Conversations").click()
        await listed.get_by_role("link", name="New conversation").click()
        await expect(listed).to_be_hidden()
        await expect(page.get_by_role("heading", name="What shall we do?")).to_be_visible()


async def test_a_block_is_shared_and_shared_no_longer(browser: Browser, running: Platform, axe: str) -> None:
    """The owner sees with whom a block is shared, shares it for an action, and ends that; on a phone, too."""
    auth = AuthClient(running.bus)
    await running.gateway.create_block("orchard")
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open("#/blocks")
        card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="orchard"))
        await card.get_by_role("button", name="Shared with").click()
        await expect(card.get_by_text("Nobody but you may use it.")).to_be_visible()
        await expect(card.get_by_text("trunkline auth create NAME")).to_be_visible()
        await auth.create_identity("anna")
        await card.get_by_role("button", name="Shared with").click()
        await card.get_by_role("button", name="Shared with").click()
        await card.get_by_label("may", exact=True).select_option("approve")
        await card.get_by_role("button", name="Share", exact=True).click()
        await expect(card.get_by_text("anna: read, chat and decide about calls")).to_be_visible()
        await check_page(page, axe)
        shared = await page.request.get(f"{running.url}/api/blocks/orchard/shares/anna")
        assert (await shared.json())["action"] == "approve"
        await card.get_by_role("button", name="Stop sharing with anna").click()
        await expect(card.get_by_text("Nobody but you may use it.")).to_be_visible()
        assert found.problems == []


async def test_a_block_is_made_changed_and_put_away(signed_in: Visit, running: Platform) -> None:
    """MB-F26: a block is created, given a purpose, stopped, started, archived and restored; its file says so."""
    page = await signed_in.open("#/blocks")
    await page.get_by_label("Name of a new block").fill("garden")
    await page.get_by_role("button", name="Create").click()
    card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="garden"))
    await card.get_by_role("button", name="Settings").click()
    await card.get_by_label("Purpose").fill("Grow beans")
    await card.get_by_label("You are asked").select_option("all")
    await card.get_by_role("button", name="Save").click()
    await expect(card.get_by_text("Saved.")).to_be_visible()
    settings = (running.home.memory / "blocks/garden/block.toml").read_text()
    assert 'description = "Grow beans"' in settings and 'approvals = "all"' in settings
    await card.get_by_role("button", name="Stop").click()
    await page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    await card.get_by_role("button", name="Start").click()
    await card.get_by_role("button", name="Archive").click()
    await page.get_by_role("dialog").get_by_role("button", name="Archive").click()
    await page.get_by_role("button", name="Restore").click()
    await expect(card.get_by_text("Grow beans").first).to_be_visible()
    await page.get_by_label("Name of a new block").fill("Not a name!")
    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("alert")).to_be_visible()


async def test_a_grant_is_listed_and_revoked(signed_in: Visit) -> None:
    """A call that was allowed for always is listed among the grants, and the revoked grant is gone."""
    page = await signed_in.open()
    await send(page, 'call:write_file {"path": "always.md", "content": "one"} ;; say:Written.')
    await page.get_by_role("button", name="Always", exact=True).click()
    await expect(page.locator(".answer", has_text="Written.")).to_be_visible()
    await page.get_by_role("link", name="Approvals").click()
    grant = page.get_by_role("listitem").filter(has_text=re.compile("write_file"))
    await grant.get_by_role("button", name="Revoke").click()
    await expect(page.get_by_text("Nothing is allowed beyond one call.")).to_be_visible()


async def test_the_first_steps_lead_to_a_first_answer(browser: Browser, running: Platform, axe: str) -> None:
    """On a phone and by keyboard: the model, the agent's name and how it asks are chosen; the page says what it sends
    before it sends it; the answer arrives; the block has the choices."""
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open()
        await page.get_by_role("link", name="First steps").press("Enter")
        await expect(page.get_by_role("option", name="scripted", exact=False).first).to_be_attached()
        await page.get_by_label("Name of the agent").fill("Ada")
        await page.get_by_label("about every call").press("Space")
        await expect(page.get_by_text("sends one message, “Hello! What can you do for me?”")).to_be_visible()
        await check_page(page, axe)
        await page.get_by_role("button", name="Save and begin").press("Enter")
        await expect(page.get_by_role("button", name="Ask again")).to_be_visible()
        settings = (running.home.memory / "blocks/main/block.toml").read_text()
        assert 'monitor_name = "Ada"' in settings and 'approvals = "all"' in settings
        block = {"config": {"monitor_name": None, "permissions": {"approvals": "some"}}}
        assert (await page.request.patch(f"{running.url}/api/blocks/main", data=block)).ok
        assert found.problems == []


async def test_mission_control_shows_what_the_platform_did(
    browser: Browser, running: Platform, axe: str
) -> None:
    """On a phone: the trace of a turn as a waterfall, what it cost, a limit that is set and removed (CC-T17), the
    workers and queues, the audit log, and a message that no worker could read, which is deleted."""
    letter = DeadLetter(
        subject="trunkline.turn.part.3.conv_1", reason="invalid", detail="no JSON", data="eA==", size=1
    )
    await running.bus.append(DEAD_LETTER_TOPIC, letter)
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open()
        await send_raw(page, "call:list_skills {} ;; say:traced")
        await page.get_by_role("link", name="Trace").click()
        again = page.get_by_role("button", name="Read again")
        row = page.locator(".trace li", has_text="list_skills")
        while not await row.count():  # spans are stored when they end
            await again.click()
            await page.wait_for_timeout(200)
        await expect(row.locator(".trace-bar")).to_be_attached()
        await check_page(page, axe)
        for name, text in (("Spend", "Total"), ("Platform", "monitor"), ("Audit", "list_skills")):
            await page.get_by_role("link", name=name).click()
            await expect(page.get_by_text(text).first).to_be_visible()
            await check_page(page, axe)
        await page.get_by_role("link", name="Spend").click()
        field = page.get_by_label("US$ a day", exact=True)
        limit = page.get_by_role("listitem").filter(has=field)
        await field.fill("1000")
        await limit.get_by_role("button", name="Set limit").click()
        remove = limit.get_by_role("button", name="Remove limit")
        await expect(remove).to_be_visible()
        assert "1000" in (running.home.memory / "budgets/limits.json").read_text()
        await check_page(page, axe)
        await remove.click()
        await expect(remove).to_have_count(0)
        await page.get_by_role("link", name="Dead letters").click()
        item = page.get_by_role("listitem").filter(has_text="no JSON")
        await item.get_by_role("button", name="Send again").click()
        await expect(item.get_by_role("alert")).to_be_visible()
        await check_page(page, axe)
        await item.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_text("every message was handled")).to_be_visible()
        assert found.problems == []


THOUGHT_SECONDS = 0.5
"""The longest time between an event and its entry."""

NOTE_TIMES = """() => {
  window.shownAt = {};
  new MutationObserver(() => {
    for (const item of document.querySelectorAll('.thoughts [data-kind="result"]'))
      window.shownAt[item.textContent.match(/clock ([0-9.]+)/)?.[1]] ??= Date.now() / 1000;
  }).observe(document.querySelector('main'), {childList: true, subtree: true, characterData: true});
}"""
"""Notes when the result of each call of the clock appeared, by the time that the call returned."""


async def test_CC_T17_thoughts_appear_as_they_happen(signed_in: Visit, running: Platform, axe: str) -> None:
    """CC-T17, CC-F22: reasoning, calls, results and answers of any channel appear, each with its block and a colour of
    its kind, less than half a second after the event. While the list is paused nothing moves, and nothing is lost."""
    page = await signed_in.open("#/activity/thoughts")
    await expect(page.locator(".thoughts")).to_be_attached()
    await page.evaluate(NOTE_TIMES)
    delay, shown = THOUGHT_SECONDS, dict[str, float]()
    with anyio.fail_after(60):  # on a busy machine some entries are late
        while delay >= THOUGHT_SECONDS:
            await running.say("think:Which time is it? ;; call:clock {} ;; say:Late.")
            await page.wait_for_function(
                "shown => Object.keys(window.shownAt).length > shown", arg=len(shown)
            )
            shown = await page.evaluate("window.shownAt")
            delay = min(at - float(called) for called, at in shown.items())
    entries = page.locator(".thoughts li")
    for kind, text in (
        ("thought", "Which time is it?"),
        ("call", "clock {}"),
        ("result", "clock: clock"),
        ("text", "Late."),
        ("ended", ""),
    ):
        entry = entries.and_(page.locator(f'[data-kind="{kind}"]')).filter(has_text=text).first
        await expect(entry).to_be_visible()
        await expect(entry.get_by_role("link", name="main")).to_be_visible()
        await expect(entry.get_by_text("interactive")).to_be_visible()
    colours = "[...document.querySelectorAll('.thoughts li')].map((e) => getComputedStyle(e).borderLeftColor)"
    assert len(set(await page.evaluate(colours))) >= 5
    await check_page(page, axe)
    await in_background(running, "say:Nightly.")
    nightly = entries.filter(has_text="Nightly.")
    await expect(nightly.get_by_text("background")).to_have_count(1)
    await page.get_by_role("button", name="Pause").click()
    await running.answer(await running.send("say:Unseen."))
    assert await entries.filter(has_text="Unseen.").count() == 0
    await page.get_by_role("button", name="Pause").click()
    await expect(entries.filter(has_text="Unseen.")).to_have_count(1)


async def test_CC_F22_the_state_of_agents_is_inspected(signed_in: Visit, running: Platform, axe: str) -> None:
    """CC-F22: one page has the latest conversations, what was remembered, what each conversation cost, and a search by
    meaning over all of it."""
    accepted = await running.send("say:inspected")
    await running.answer(accepted)
    fact = Remember(content="Beans climb to the left.", actor="owner", conversation_id=accepted.conversation)
    await running.bus.call(MEMORY_REMEMBER, fact, scope=Scope(turn=accepted.turn), timeout=30)
    page = await signed_in.open("#/activity/state")
    await expect(
        page.get_by_role("listitem").filter(has_text="Beans climb to the left.").first
    ).to_be_visible()
    for title in ("Conversations", "Cost ledger"):
        listed = page.locator("h2", has_text=title).locator("+ ul")
        await expect(listed.locator(f'a[href*="{accepted.conversation}"]')).to_be_visible()
    await page.get_by_role("searchbox").fill("climbing beans")
    await page.get_by_role("button", name="Search").click()
    await expect(page.get_by_text("Why", exact=False).first).to_be_visible()
    await check_page(page, axe)


async def test_a_long_note_of_a_span_fits_a_phone(browser: Browser, running: Platform, axe: str) -> None:
    """A note without a space, such as the name of an error, does not make the page of a trace wider than a phone."""
    trace = "c" * 32
    async with httpx.AsyncClient(base_url=running.url, timeout=60) as http:
        headers = {
            "authorization": f"Bearer {running.token}",
            "traceparent": f"00-{trace}-00f067aa0ba902b7-01",
        }
        answer = await http.post("/conversations/messages", json={"content": "say:noted"}, headers=headers)
    turn = answer.headers["x-turn-id"]
    noted = SpanRecord(
        trace_id=trace, span_id=new_id("span"), parent_id=None, name="execute_tool x", kind="internal",
        service="trunkline.tools", start=1_000_000_000, end=3_000_000_000,
        attributes={semconv.TURN: turn, semconv.ERROR_TYPE: "too_long_" * 30},
        status="error",
    )  # fmt: skip
    await running.bus.append(SPANS, SpanBatch(spans=(noted,)), trace=trace)
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open(f"#/activity/trace/{turn}")
        await expect(page.locator(".trace-time", has_text="too_long_too_long_")).to_be_visible()
        await check_page(page, axe)
        assert found.problems == []


async def say_until(running: Platform, code: str | None) -> None:
    """Send messages until the breaker is closed, or open for None: a change counts within a second."""
    with anyio.fail_after(60):
        while (await running.say("say:counted")).ended.code != code:  # noqa: ASYNC110  it is asked by messages
            await anyio.sleep(0.1)


async def test_CC_T17_a_limit_of_the_page_changes_the_breaker(signed_in: Visit, running: Platform) -> None:
    """CC-T17, CC-F22, CC-F23: a limit that is set on the page closes the breaker, and one that is raised opens it. The
    bar says what is left, is red when the budget is used up, and the breach is in the history."""
    page = await signed_in.open("#/activity/spend")
    field = page.get_by_label("Requests an hour", exact=True)
    limit = page.get_by_role("listitem").filter(has=field)
    bar = page.get_by_role("meter", name=re.compile("Used of the budget of .*-.*T"))
    await field.fill("1")
    await limit.get_by_role("button", name="Set limit").click()
    await expect(bar).to_have_attribute("data-level", "low")
    await say_until(running, "over_budget")
    await expect(bar).to_have_attribute("data-level", "full")
    await field.fill("100000")
    await limit.get_by_role("button", name="Set limit").click()
    await expect(bar).to_have_attribute("data-level", "low")
    await expect(page.get_by_text(re.compile("9.* left until"))).to_be_visible()
    await say_until(running, None)
    await page.reload()
    history = page.locator("h2", has_text="Budgets that were used up").locator("+ ul")
    await expect(history.get_by_role("listitem").first).to_be_visible()
    await limit.get_by_role("button", name="Remove limit").click()
    await expect(bar).to_have_count(0)


async def test_stop_shows_what_it_ended(signed_in: Visit, running: Platform) -> None:
    """CC-T17: STOP is reached by keyboard from any page and asks once. Then the page names the turn that ended, the
    workers that reported their end, and who stopped everything; a reload shows it still. Nothing on the page releases
    it."""
    page = await signed_in.open()
    accepted = await running.send("slow:400:50")
    await page.get_by_role("link", name="STOP").focus()
    await page.keyboard.press("Enter")
    turn = page.get_by_role("listitem").filter(has=page.locator(f'a[href*="{accepted.conversation}"]'))
    switch = KillSwitch(running.home.path)
    try:
        await expect(page.get_by_role("dialog")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(turn.get_by_text("runs")).to_be_visible()
        assert not switch.is_engaged
        await page.get_by_role("button", name="Stop everything").click()
        await page.get_by_role("dialog").get_by_role("button", name="STOP").click()
        await expect(
            page.get_by_text("Reported that they ended all that they ran: monitor, tools.")
        ).to_be_visible()
        await expect(turn.get_by_text("stopped")).to_be_visible()
        assert switch.is_engaged
        await page.reload()
        await expect(
            page.get_by_role("alert").filter(has_text=re.compile("stopped on .* by owner"))
        ).to_be_visible()
        assert await page.get_by_role("button", name=re.compile("release", re.IGNORECASE)).count() == 0
    finally:
        switch.release()
    await expect(page.get_by_role("alert")).to_have_count(0)
    assert (await running.answer(accepted)).ended.reason in ("cancelled", "stopped")


async def test_what_the_token_refuses_is_disabled(browser: Browser, running: Platform) -> None:
    """With a token that only reads, each page disables what the gateway would refuse, and says which scope it needs."""
    token = (await AuthClient(running.bus).issue_token("owner", TokenScope.READ)).text
    async with visit(browser, running.url, token, **PHONE) as found:
        page = await found.open("#/activity/stop")
        await expect(page.get_by_role("button", name="Stop everything")).to_be_disabled()
        await expect(page.get_by_text("Only the owner may do this, with the scope “operate”")).to_be_visible()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await page.get_by_role("link", name="Blocks").click()
        await expect(page.get_by_role("button", name="Create")).to_be_disabled()
        await expect(page.get_by_role("button", name="Settings").first).to_be_disabled()
        await page.get_by_role("link", name="Chat").click()
        await expect(page.get_by_label("Message", exact=True)).to_be_disabled()
        await expect(page.get_by_role("link", name="First steps")).to_have_count(0)
        await expect(
            page.get_by_text("needs an access token with the scope “chat”; yours has “read”")
        ).to_be_visible()
        assert found.problems == []


async def test_background_tasks_show_their_output_as_it_comes(
    browser: Browser, running: Platform, axe: str
) -> None:
    """On a phone: a running task with output that grows, and the request to end it; then the check-up."""
    task, lock = begin_task(running.home.path, "main", "0a1b2c3d", "make", "test")
    output = OutputFile(task.folder)
    output.add(b"begun\n")
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open("#/activity/tasks")
        await page.get_by_role("button", name="Output").click()
        await expect(page.get_by_role("log")).to_contain_text("begun")
        output.add(b"half done\n")
        await expect(page.get_by_role("log")).to_contain_text("half done")
        await check_page(page, axe)
        await page.get_by_role("button", name="End it").click()
        while not task.cancel_reason():
            await page.wait_for_timeout(50)
        task.write_exit(ExitRecord(at=datetime.now(UTC), killed="cancelled"))
        os.close(lock)
        await expect(page.get_by_text("was ended: cancelled")).to_be_visible()
        await page.get_by_role("link", name="Check-up").click()
        await expect(page.get_by_text("config.valid")).to_be_visible(timeout=60_000)
        await check_page(page, axe)
        assert found.problems == []
