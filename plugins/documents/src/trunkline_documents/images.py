"""Pictures of text."""

from typing import BinaryIO

from trunkline.api.documents import Document, Reader, Section
from trunkline_documents import tesseract


class ImageReader(Reader):
    """The text that tesseract sees."""

    name = "picture"
    suffixes = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif")

    def unavailable(self) -> str | None:
        """See ``Reader.unavailable``."""
        return tesseract.missing_reason()

    def read(self, file: BinaryIO, name: str) -> Document:
        """See ``Reader.read``."""
        return Document(sections=(Section(text=tesseract.read(file.read())),))
