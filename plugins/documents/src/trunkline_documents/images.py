"""Pictures of text, read by the program tesseract where it is installed. Nothing is downloaded."""

import shutil
import subprocess
from typing import BinaryIO

from trunkline.api.documents import Document, Reader, Section, UnreadableDocument

HINT = "Debian: apt install tesseract-ocr; macOS: brew install tesseract"


class ImageReader(Reader):
    """The text that tesseract sees."""

    name = "picture"
    suffixes = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif")

    def unavailable(self) -> str | None:
        """See ``Reader.unavailable``."""
        return missing_reason()

    def read(self, file: BinaryIO, name: str) -> Document:
        """See ``Reader.read``."""
        return Document(sections=(Section(text=read_image(file.read())),))


def missing_reason() -> str | None:
    """Return why no picture can be read; None when tesseract is installed."""
    if shutil.which("tesseract"):
        return None
    return f"pictures are read by tesseract, which is not installed ({HINT})"


def read_image(picture: bytes) -> str:
    """The text in a picture, in whatever format tesseract knows. Raises UnreadableDocument."""
    done = subprocess.run(["tesseract", "stdin", "stdout"], input=picture, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise UnreadableDocument(f"tesseract cannot read it: {said[-1] if said else done.returncode}")
    return done.stdout.decode(errors="replace")
