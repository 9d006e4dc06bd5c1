"""Documents over HTTP: what the route reads and stores, and what it refuses with nothing changed."""

import shutil
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import misbehaving_reader
import pytest
import samples

import trunkline
from tests.other_users import HEADER, Visitors, share
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import Identity
from trunkline.testing.platform import Platform, platform

pytestmark = pytest.mark.anyio

ROUTE = "/api/memory/documents"
MIB = 1024 * 1024

GUEST = Identity(id="guest", scope=TokenScope.OPERATE)
LIMITED = Identity(id="limited", type="owner", blocks=("main",))

PATHS = (
    "../token.md", "../../x.pdf", "/etc/passwd", "notes/a.md", "..", ".", "..\\x.md", "~x.md", ".git", ".env",
    "a\x1b.md", "a\u202efdp.md", f"{'x' * 300}.md",
)  # fmt: skip
"""Names that lead elsewhere, that read as another name, or that no file of memory may have."""


class BadFormat:
    """A plugin with a reader that does what the file says."""

    @trunkline.hookimpl
    def trunkline_readers(self) -> list[object]:
        return [misbehaving_reader.Bad()]


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Platform]:
    plugins = (Visitors(GUEST, LIMITED), BadFormat())
    config = {"gateway.max_attachment_mb": 4}
    async with platform(workers=("gateway", "memory"), plugins=plugins, config=config) as running:
        await share(running.bus, "operate")
        yield running


@pytest.fixture
async def http(shared: Platform) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {shared.token}"}
    async with httpx.AsyncClient(base_url=shared.url, headers=headers, timeout=60) as client:
        yield client


async def add(http: httpx.AsyncClient, name: str, data: bytes, status: int = 200) -> Any:
    response = await http.post(ROUTE, files={"file": (name, data)})
    assert response.status_code == status, response.text
    return response.json()


async def refused(http: httpx.AsyncClient, name: str, data: bytes) -> str:
    """Return the reason, which is about the file."""
    error = (await add(http, name, data, 400))["metadata"]
    assert error["field"] == "/file"
    return str(error["reason"])


def in_memory(running: Platform) -> dict[str, str]:
    """Return the documents in memory: the name and the text of each."""
    return {file.name: file.read_text() for file in (running.home.memory / "documents").glob("*")}


def leftovers(running: Platform) -> list[str]:
    """Return the names of uploads that are still on disk."""
    return [file.name for file in running.home.cache.iterdir() if file.name.startswith(".transfer-")]


async def test_a_document_is_read_and_found_in_memory(shared: Platform, http: httpx.AsyncClient) -> None:
    """The answer names the path, the title and the pages; the text is what ``trunkline memory add`` stores. The same
    document again changes nothing."""
    pages = ["Sow in May.", "Water the runner beans daily."]
    pdf = samples.pdf(pages, title="The allotment")
    added = {"path": "documents/report.pdf.md", "added": True, "title": "The allotment", "pages": 2}
    assert await add(http, "report.pdf", pdf) == added
    text = in_memory(shared)["report.pdf.md"]
    assert text.startswith("---\nsource: report.pdf\n") and "<!-- page 2 -->" in text and pages[1] in text
    assert await add(http, "report.pdf", pdf) == {**added, "added": False}
    letter = await add(http, "letter.docx", samples.docx())
    assert letter == {"path": "documents/letter.docx.md", "added": True, "title": "The allotment"}
    assert "The climbing frame is green." in in_memory(shared)["letter.docx.md"]
    assert await add(http, "plain.txt", b"Plain.\n") == {"path": "documents/plain.txt", "added": True}
    history = (await http.get("/api/memory/history", params={"path": "documents"})).json()["revisions"]
    assert {one["author"] for one in history} == {"owner"}
    assert leftovers(shared) == []


async def test_another_document_of_the_same_name_is_not_replaced(
    shared: Platform, http: httpx.AsyncClient
) -> None:
    """409, converted or not, and memory keeps what it has."""
    for name, first, second in (
        ("beans.pdf", samples.pdf(["Sow in May."]), samples.pdf(["Sow in June."])),
        ("beans.md", b"May\n", b"June\n"),
    ):
        await add(http, name, first)
        assert (await add(http, name, second, 409))["code"] == "conflict"
    texts = in_memory(shared)
    assert "May" in texts["beans.pdf.md"] and texts["beans.md"] == "May\n"


async def test_an_unreadable_document_is_refused_with_the_reason(
    shared: Platform, http: httpx.AsyncClient
) -> None:
    """An unknown type, a wrong format behind a known name, a password, nothing, a picture without its program, and a
    file that crashes its reader: the reason says which, has no path of the server, and nothing is stored."""
    before = in_memory(shared)
    docx = samples.docx()
    entry = docx.index(b"PK\x01\x02") + 8  # the flags of the first entry
    wrong = {
        ("strange.bin", b"\0\1\2"): "no reader is there for it",
        ("fake.pdf", b"\0\1\2 this is none"): "it is broken",
        ("fake.docx", samples.pdf(["beans"])): "it is broken",
        ("latin.txt", b"\xe4\xf6\xfc"): "UTF-8",
        ("locked.docx", docx[:entry] + b"\1" + docx[entry + 1 :]): "protected by a password",
        ("empty.pdf", b""): "The file is empty",
        ("crash.bad", b"crash"): "it crashes its reader",
    }
    if shutil.which("tesseract") is None:
        wrong["scan.png", samples.PNG] = "apt install tesseract-ocr"
    for (name, data), reason in wrong.items():
        said = await refused(http, name, data)
        assert reason in said and str(shared.home.path) not in said, name
    assert in_memory(shared) == before and leftovers(shared) == []


async def test_a_document_that_attacks_is_refused(shared: Platform, http: httpx.AsyncClient) -> None:
    """A name that leads elsewhere, an archive that unpacks to half a gigabyte, and a file over the limit: refused, and
    nothing is stored or left behind."""
    before = in_memory(shared)
    for name in PATHS:
        await refused(http, name, b"x")
    bomb = samples.packed({"word/document.xml": bytes(520 * MIB)})
    assert "unpack" in await refused(http, "bomb.docx", bomb)
    assert (await add(http, "large.txt", bytes(4 * MIB + 1), 413))["code"] == "too_large"
    assert (await http.post(ROUTE, data={"file": "x"}, files={"other": b"x"})).status_code == 400
    assert in_memory(shared) == before and leftovers(shared) == []
    assert not (shared.home.path / "token.md").exists()


@pytest.mark.parametrize("who", [GUEST.id, LIMITED.id])
async def test_only_the_owner_adds_documents(shared: Platform, who: str) -> None:
    """A guest with every block shared, and a token of the owner for one block, are refused before anything is read."""
    before = in_memory(shared)
    async with httpx.AsyncClient(base_url=shared.url, headers={HEADER: who}, timeout=60) as http:
        refusal = await add(http, "mine.md", b"x", 403)
        assert set(refusal) == {"code", "message"}
    async with httpx.AsyncClient(base_url=shared.url, timeout=60) as http:
        await add(http, "mine.md", b"x", 401)
    assert in_memory(shared) == before


async def test_reading_ends_when_the_client_leaves(shared: Platform, http: httpx.AsyncClient) -> None:
    """A reader that would go on for minutes is ended, and the upload is deleted."""
    before = in_memory(shared)
    with anyio.move_on_after(3) as scope:
        await add(http, "slow.bad", b"hang")
    assert scope.cancelled_caught
    with anyio.fail_after(20):
        while leftovers(shared):  # noqa: ASYNC110  the folder tells nobody
            await anyio.sleep(0.05)
    assert in_memory(shared) == before
