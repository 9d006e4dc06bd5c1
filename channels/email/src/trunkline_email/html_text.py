"""The text of an HTML mail, without what is quoted."""

from lxml import html
from lxml.etree import ParserError, XMLSyntaxError

UNSEEN = ("script", "style", "head", "title", "template", "noscript")
"""Elements whose text is not shown."""

QUOTED_BY = "//blockquote | //*[contains(concat(' ', normalize-space(@class), ' '), ' gmail_quote ')]"
"""What mail programs wrap a quoted mail in."""

BLOCKS = (
    "p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "ul", "ol", "table", "hr", "section",
    "article",
)  # fmt: skip
"""Elements that begin and end a line."""

MAX_HTML = 2_000_000
"""Characters of an HTML text that are read."""


def html_text(source: str, *, quotes: bool = False) -> str:
    """Return the text that an HTML mail shows; with ``quotes`` that of quoted mails too."""
    try:
        tree = html.document_fromstring(source[:MAX_HTML].encode(), parser=html.HTMLParser(encoding="utf-8"))
    except (ParserError, XMLSyntaxError, ValueError):
        return ""
    if not quotes:
        for element in tree.xpath(QUOTED_BY):
            element.drop_tree()
    for element in list(tree.iter(*UNSEEN)):
        element.drop_tree()
    for element in tree.iter(*BLOCKS):
        element.tail = f"\n{element.tail or ''}"
        if element.tag != "br":
            element.text = f"\n{'* ' if element.tag == 'li' else ''}{element.text or ''}"
    lines = [" ".join(line.split()) for line in tree.text_content().split("\n")]
    kept = [line for number, line in enumerate(lines) if line or (number and lines[number - 1])]
    return "\n".join(kept).strip()
