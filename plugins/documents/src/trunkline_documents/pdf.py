"""PDF, with PDFium. A page without text is a picture of one, and is read as that where tesseract is."""

from typing import TYPE_CHECKING, BinaryIO

from trunkline.api.documents import Document, Reader, Section, UnreadableDocument
from trunkline_documents.images import missing_reason, read_image

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

DOTS_PER_INCH = 200
MOST_PIXELS = 50_000_000


class PdfReader(Reader):
    """Pages, under the headings of the bookmarks where there are any."""

    name = "pdf"
    suffixes = (".pdf",)

    def read(self, file: BinaryIO, name: str) -> Document:
        """See ``Reader.read``."""
        import pypdfium2

        try:
            pdf = pypdfium2.PdfDocument(file)
        except pypdfium2.PdfiumError as error:
            raise UnreadableDocument(_why(str(error))) from error
        outline = _outline(pdf)
        texts = [_text(pdf[number]) for number in range(len(pdf))]
        if not any(text.strip() for text in texts):
            texts = _scanned(pdf)
        sections = tuple(
            Section(text=text, heading=outline.get(number, ()), page=number + 1)
            for number, text in enumerate(texts)
        )
        title = str(pdf.get_metadata_dict().get("Title", ""))
        return Document(sections=sections, title=title, pages=len(texts))


def _why(message: str) -> str:
    return (
        "it is protected by a password" if "assword" in message else "it is broken: it is not a readable PDF"
    )


def _text(page: "PdfPage") -> str:
    try:
        return str(page.get_textpage().get_text_bounded())
    finally:
        page.close()


def _outline(pdf: "PdfDocument") -> dict[int, tuple[str, ...]]:
    """The headings that hold at the beginning of each page, by the page's number from 0."""
    starts: dict[int, tuple[str, ...]] = {}
    path: tuple[str, ...] = ()
    for mark in pdf.get_toc():
        target = mark.get_dest()
        page = target.get_index() if target else None
        path = (*path[: mark.level], mark.get_title() or "")
        if page is not None:
            starts.setdefault(page, path)
    found: dict[int, tuple[str, ...]] = {}
    held: tuple[str, ...] = ()
    for number in range(len(pdf)) if starts else ():
        held = starts.get(number, held)
        found[number] = held
    return found


def _scanned(pdf: "PdfDocument") -> list[str]:
    if reason := missing_reason():
        raise UnreadableDocument(f"its pages are pictures, and {reason}")
    return [read_image(_picture(pdf[number])) for number in range(len(pdf))]


def _picture(page: "PdfPage") -> bytes:
    """The page as a grey picture in the PGM format."""
    width, height = page.get_size()
    scale = min(DOTS_PER_INCH / 72, (MOST_PIXELS / max(1.0, width * height)) ** 0.5)
    drawn = page.render(scale=scale, grayscale=True)  # pyright: ignore[reportArgumentType] - takes a float
    data, stride = bytes(drawn.buffer), drawn.stride
    rows = b"".join(data[line * stride : line * stride + drawn.width] for line in range(drawn.height))
    page.close()
    return b"P5 %d %d 255\n" % (drawn.width, drawn.height) + rows
