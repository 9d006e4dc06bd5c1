"""The pages of memory: what an agent wrote is found, traced to its turn, changed and taken back."""

import re
import tarfile
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from trunkline.contracts.memory.chunks import MEMORY_LINK, MEMORY_REMEMBER, LinkChunks, Remember
from trunkline.testing.platform import Platform

from .conftest import visit
from .test_chat import send_raw
from .test_pages import PHONE, axe, check_page

pytestmark = pytest.mark.anyio

__all__ = ["axe"]

NOTE = "blocks/main/notes/beans.md"

SHOWN = b"BT /F1 12 Tf 72 720 Td (Water the beans.) Tj ET"
PDF = (
    b"%%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"
    b"2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n"
    b"3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
    b" /Resources << /Font << /F1 5 0 R >> >> >>\nendobj\n"
    b"4 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\nendobj\n"
    b"5 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\n"
    b"trailer\n<< /Root 1 0 R >>\n%%%%EOF\n"
) % (len(SHOWN), SHOWN)
"""A page of text."""


async def test_a_note_is_traced_changed_and_taken_back(browser: Browser, running: Platform, axe: str) -> None:
    """On a phone: the search finds what an agent wrote and says why; the line leads to its turn; a change is shown as a
    diff before it is saved; the history takes the change back."""
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open()
        text = '{"path": "notes/beans.md", "content": "Sow runner beans in May.\\n"}'
        await send_raw(page, f"call:memory_write {text} ;; say:Noted.")
        await page.get_by_role("button", name="Allow", exact=True).click()
        await expect(page.locator(".answer", has_text="Noted.")).to_be_visible()
        conversation = page.url.rpartition("/")[2]
        await page.get_by_role("link", name="Memory").click()
        await page.get_by_role("searchbox").fill("runner beans")
        await page.get_by_role("button", name="Search").click()
        await page.get_by_text("Why:").first.click()
        await expect(page.locator(".why dt", has_text="words").first).to_be_visible()
        await check_page(page, axe)
        await page.get_by_role("link", name=NOTE).first.click()
        await page.get_by_role("button", name="Edit").click()
        await page.get_by_label(f"Text of {NOTE}").fill("Sow runner beans in June.\n")
        await page.get_by_role("button", name="Show the change").click()
        await expect(page.locator(".diff-removed", has_text="in May")).to_be_visible()
        await expect(page.locator(".diff-added", has_text="in June")).to_be_visible()
        file = running.home.memory / NOTE
        assert "May" in file.read_text()
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Saved as a commit of yours.")).to_be_visible()
        assert "June" in file.read_text()
        await page.get_by_role("button", name="History").click()
        newest = page.get_by_role("listitem").first
        await newest.get_by_role("button", name="What it changed").click()
        await expect(newest.locator(".diff-added", has_text="in June")).to_be_visible()
        await check_page(page, axe)
        await newest.get_by_role("button", name="Undo").click()
        await page.get_by_role("dialog").get_by_role("button", name="Undo").click()
        await expect(page.get_by_role("listitem")).to_have_count(3)
        assert "May" in file.read_text()
        await page.get_by_role("listitem").last.get_by_role("link", name="the turn").click()
        await expect(page.locator("[data-shown=true]", has_text="Noted.")).to_be_visible()
        assert conversation in page.url
        assert found.problems == []


async def test_the_tree_shows_who_wrote_each_line(browser: Browser, running: Platform, axe: str) -> None:
    """By keyboard alone: folders open, the file names the writer of each line, and a change that was overtaken is
    refused, with what was typed still there."""
    path = "blocks/main/kale/kale.md"
    async with visit(browser, running.url, running.token) as found:
        kale = {"path": path, "content": "Kale likes frost.\n"}
        assert (await found.page.request.put(f"{running.url}/api/memory/file", data=kale)).ok
        page = await found.open("#/memory")
        for name in ("blocks", "main", "kale"):
            await page.get_by_role("button", name=name, exact=True).focus()
            await page.keyboard.press("Enter")
        await page.get_by_role("link", name="kale.md").focus()
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Who wrote it").click()
        await expect(page.locator(".authors")).to_contain_text("Kale likes frost.")
        await check_page(page, axe)
        await page.get_by_role("button", name="Text", exact=True).click()
        await page.get_by_role("button", name="Edit").click()
        field = page.get_by_label(f"Text of {path}")
        await field.fill("Mine.\n")
        await page.get_by_role("button", name="Show the change").click()
        await expect(page.get_by_role("button", name="Save")).to_be_visible()
        (running.home.memory / path).write_text("Theirs.\n")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text("does not fit what is there now")
        await expect(field).to_have_value("Mine.\n")
        assert found.problems == []


async def test_linked_texts_are_a_graph_of_links(browser: Browser, running: Platform, axe: str) -> None:
    """Only linked texts are in the graph. By keyboard, on a phone: a text is chosen, and is shown with its links."""
    texts = ("Beans climb poles.", "Poles are of hazel.", "Frost comes in October.")
    ids = []
    for text in texts:
        request = Remember(content=text, actor="test", conversation_id="graph")
        ids.append((await running.bus.call(MEMORY_REMEMBER, request)).chunk_ids[0])
    link = LinkChunks(source_id=ids[0], target_id=ids[1], link_type="supports", actor="test")
    await running.bus.call(MEMORY_LINK, link)
    async with visit(browser, running.url, running.token, **PHONE) as found:
        page = await found.open("#/memory/%3Achunks")
        await page.get_by_role("link", name="Links as a graph").click()
        graph = page.get_by_role("group", name="Links as a graph")
        await expect(graph.get_by_role("link")).to_have_count(2)
        await graph.get_by_role("link", name=f"{texts[0]} (1 linked)").focus()
        await page.keyboard.press("Enter")
        chosen = page.get_by_role("region", name="The chosen text")
        await expect(chosen.get_by_role("listitem").first).to_contain_text(f"→ supports (1.00): {texts[1]}")
        await check_page(page, axe)
        assert found.problems == []


async def test_memory_moves_out_and_in_and_takes_documents(
    browser: Browser, running: Platform, axe: str, tmp_path: Path
) -> None:
    """The archive of an export is complete; an import says first what it would change; a file that nobody has committed
    is said to be so. Documents are read and added one by one, each with its outcome: a PDF as its text; none
    that is broken or has another's name; one that is under way can be given up."""
    (tmp_path / "sowing.md").write_text("Sow in May.\n")
    (tmp_path / "plan.pdf").write_bytes(PDF)
    (tmp_path / "scan.pdf").write_bytes(b"%PDF-1.4\xff\x00")
    async with visit(browser, running.url, running.token) as found:
        page = await found.open("#/memory/%3Atransfer")
        async with page.expect_download() as download:
            await page.get_by_role("button", name="Export").click()
        archive = await (await download.value).path()
        with tarfile.open(archive) as packed:
            assert "manifest.json" in packed.getnames()
        await page.get_by_label("Choose an archive").set_input_files(archive)
        await expect(
            page.get_by_text("Nothing has changed yet. The import would add 0 files")
        ).to_be_visible()
        await page.get_by_role("button", name=re.compile("Import .")).click()
        await expect(page.get_by_text("Imported: 0 files added, 0 changed, 0 removed.")).to_be_visible()
        await check_page(page, axe)
        await page.route("**/api/memory/import*", lambda route: None)
        await page.get_by_label("Choose an archive").set_input_files(archive)
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.get_by_role("button", name="Choose an archive")).to_be_visible()
        documents = page.get_by_label("Add documents", exact=True)
        await documents.set_input_files([tmp_path / name for name in ("sowing.md", "plan.pdf", "scan.pdf")])
        await expect(page.get_by_role("alert")).to_contain_text(re.compile("scan.pdf: .* it is broken"))
        await expect(page.get_by_role("link", name="documents/plan.pdf.md")).to_be_visible()
        assert "Water the beans" in (running.home.memory / "documents/plan.pdf.md").read_text()
        await check_page(page, axe)
        await page.get_by_role("link", name="documents/sowing.md").click()
        await expect(page.locator(".file-text")).to_have_text("Sow in May.\n")
        assert (running.home.memory / "documents/sowing.md").read_text() == "Sow in May.\n"
        (running.home.memory / "documents/own.md").write_text("Written by hand.\n")
        await page.goto(f"{running.url}/#/memory/documents%2Fown.md")
        for view in ("Who wrote it", "History"):
            await page.get_by_role("button", name=view).click()
            await expect(page.get_by_text("This file is not in the history yet.")).to_be_visible()
        await documents.set_input_files([tmp_path / "sowing.md"])
        await expect(page.get_by_text("was in memory already")).to_be_visible()
        (tmp_path / "sowing.md").write_text("Sow in June.\n")
        await documents.set_input_files([tmp_path / "sowing.md"])
        await expect(page.get_by_role("alert")).to_contain_text("documents/sowing.md exists already")
        (tmp_path / "large.md").write_bytes(bytes(17 * 1024**2))
        await documents.set_input_files([tmp_path / "large.md"])
        await expect(page.get_by_role("alert")).to_contain_text("too large. Send a shorter text or a smaller")
        await page.route("**/api/memory/documents", lambda route: None)
        await documents.set_input_files([tmp_path / "sowing.md"])
        await page.get_by_role("button", name="Do not add sowing.md").click()
        await expect(page.get_by_text("sowing.md was not added.")).to_be_visible()
        assert found.problems == []
