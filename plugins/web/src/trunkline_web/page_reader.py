"""A web page as text: what it is about, without menus and advertising, by trafilatura. It runs apart, as readers do."""

from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urljoin

from trunkline.api.documents import Document, Reader, Section, UnreadableDocument
from trunkline_web.charsets import decode_body, visible_text

if TYPE_CHECKING:
    from lxml.html import HtmlElement

LINKS = "links"
"""The heading of the section that holds the page's links, one a line."""

MOST_LINKS = 2_000


class WebPageReader(Reader):
    """Reads a page that came from ``url``; ``charset`` is what the server says of it. No file is of this kind."""

    name = "webpage"
    suffixes = ()

    def __init__(self, url: str, charset: str = "", cut: bool = False) -> None:
        self._url = url
        self._charset = charset
        self._cut = cut

    def read(self, file: BinaryIO, name: str) -> Document:
        """See ``Reader.read``: a section with the text, and one with the links."""
        from lxml import etree, html  # pyright: ignore[reportAttributeAccessIssue] - lxml has no stubs

        text = decode_body(file.read(), self._charset, cut=self._cut)
        parser = html.HTMLParser(encoding="utf-8", no_network=True)
        try:
            tree = html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
        except (etree.ParserError, etree.XMLSyntaxError) as error:
            raise UnreadableDocument("it is not a web page") from error
        title = " ".join((tree.findtext(".//title") or "").split())
        links = "\n".join(page_links(tree, self._url))
        return Document(
            sections=(
                Section(text=visible_text(_main_text(tree))),
                Section(text=visible_text(links), heading=(LINKS,)),
            ),
            title=visible_text(title)[:300],
        )


def page_links(tree: "HtmlElement", url: str) -> list[str]:
    """The links of the page: absolute addresses without fragments, each once."""
    base = tree.find(".//base[@href]")
    if base is not None:
        url = _absolute_link(url, base.get("href") or "") or url
    found: dict[str, None] = {}
    for element in tree.iter("a", "area"):
        link = _absolute_link(url, element.get("href") or "")
        if link.startswith(("http://", "https://")):
            found[link] = None
        if len(found) >= MOST_LINKS:
            break
    return [*found]


def _absolute_link(url: str, link: str) -> str:
    try:
        return "".join(urljoin(url, link.strip()).partition("#")[0].split())
    except ValueError:
        return ""


def _main_text(tree: "HtmlElement") -> str:
    """The main text as Markdown; all there is when no part of the page is the main one."""
    import trafilatura

    main = trafilatura.extract(
        tree, output_format="markdown", include_comments=False, include_tables=True, favor_recall=True
    )
    return main or trafilatura.html2txt(tree)
