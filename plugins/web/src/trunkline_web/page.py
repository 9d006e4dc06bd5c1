"""Convert a server's response to text: web pages, plain text, JSON, and documents by the platform's readers."""

from codecs import getincrementaldecoder

import msgspec

from trunkline import ToolContext, ToolError
from trunkline.api.egress import WebAddress
from trunkline_web.charsets import decode_body, visible_text
from trunkline_web.fetcher import HttpResponse
from trunkline_web.page_reader import LINKS, WebPageReader

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})

DOCUMENT_TYPES = {
    "application/pdf": ".pdf",
    "application/epub+zip": ".epub",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.oasis.opendocument.text": ".odt",
}

TEXT_TYPES = frozenset(
    {
        "application/json",
        "application/ld+json",
        "application/xml",
        "application/javascript",
        "application/x-javascript",
        "application/x-ndjson",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
    }
)

UNTYPED = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""Content types that servers send for files of unknown type."""

NO_SCRIPTS = "(The page holds no text. It may need a browser that runs its scripts, which is not done here.)"


class PageText(msgspec.Struct, frozen=True, kw_only=True):
    """A page as it was read. ``cut``: there was more of it than is ever read."""

    address: WebAddress
    text: str
    title: str = ""
    links: tuple[str, ...] = ()
    cut: bool = False


async def read_page(answer: HttpResponse, context: ToolContext) -> PageText:
    """The page that came. Raises ToolError for what is no text and cannot be made one."""
    kind = answer.media_type
    if kind in UNTYPED:
        kind = _guess_type(answer.body)
    if kind in HTML_TYPES:
        return await _read_html(answer, context)
    if kind in DOCUMENT_TYPES or answer.body.startswith(b"%PDF-"):
        return await _read_document(answer, DOCUMENT_TYPES.get(kind, ".pdf"), context)
    if kind.startswith("text/") or kind in TEXT_TYPES or kind.endswith(("+json", "+xml")):
        text = visible_text(decode_body(answer.body, answer.charset, cut=answer.cut))
        return PageText(address=answer.address, text=text or "(nothing)", cut=answer.cut)
    raise ToolError(
        f"{answer.address.url[:500]} is {kind or 'of an unknown kind'} ({len(answer.body)} bytes), not text. Nothing "
        f"was kept of it.",
        kind="unsupported",
    )


async def _read_html(answer: HttpResponse, context: ToolContext) -> PageText:
    if not answer.body.strip():
        return PageText(address=answer.address, text="(nothing)")
    reader = WebPageReader(answer.address.url, answer.charset, answer.cut)
    found = await context.documents.convert(_document_name(answer.address, ".html"), answer.body, reader)
    links = [one.text for one in found.sections if one.heading == (LINKS,)]
    text = "\n\n".join(one.text for one in found.sections if one.heading != (LINKS,))
    return PageText(
        address=answer.address,
        text=text or NO_SCRIPTS,
        title=found.title,
        links=tuple("\n".join(links).split()),
        cut=answer.cut,
    )


async def _read_document(answer: HttpResponse, suffix: str, context: ToolContext) -> PageText:
    if answer.cut:
        raise ToolError(
            f"{answer.address.url[:500]} is larger than {len(answer.body)} bytes and cannot be read in part.",
            kind="too_large",
        )
    found = await context.documents.convert(_document_name(answer.address, suffix), answer.body)
    parts = []
    for section in found.sections:
        place = f"[page {section.page}]\n" if section.page is not None else ""
        heading = f"## {section.heading[-1]}\n\n" if section.heading else ""
        parts.append(place + heading + section.text)
    return PageText(address=answer.address, text=visible_text("\n\n".join(parts)), title=found.title)


def _document_name(address: WebAddress, suffix: str) -> str:
    """Return a file name for the document: the last part of its path, with the suffix of its type."""
    last = address.target.partition("?")[0].rstrip("/").rpartition("/")[2][:100] or address.host
    return last if last.lower().endswith(suffix) else last + suffix


def _guess_type(body: bytes) -> str:
    """Guess the type of a body when the server does not declare it."""
    start = body[:1024].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "text/html"
    if b"\0" in body[:4096] or not _is_utf8(body[:4096]):
        return ""
    return "text/plain"


def _is_utf8(start: bytes) -> bool:
    try:
        getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return True
