"""Pasted files: a pasted name of a file becomes a mention, and a picture of the clipboard becomes a file."""

import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import anyio

from trunkline import TrunklineError
from trunkline_terminal.file_mentions import mention_of

CLIPBOARD_PROGRAMS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-t", "image/png", "-o"),
    ("pngpaste", "-"),
)
"""Programs that print the picture in the clipboard: for Wayland, X11 and macOS."""

CLIPBOARD_SECONDS = 10.0
"""Seconds that such a program may take."""

PNG = b"\x89PNG\r\n\x1a\n"


def mention_of_paste(text: str) -> str:
    """Return the mention of the files that a pasted text names; "" if it is any other text.

    A terminal pastes the whole path of a file that is dropped on it: quoted, with backslashes before special
    characters, or as an address ``file://``. A relative name stays text, because a word may be one by chance.
    """
    names = [_path_of(line) for line in text.strip().split("\n")]
    if not all(names):
        return ""
    return " ".join(mention_of(name) for name in names) + " "


def _path_of(line: str) -> str:
    """Return the path of the existing file that a pasted line names whole; "" if it names none."""
    word = line.strip()
    if word.startswith("file://"):
        word = unquote(urlsplit(word).path)
    elif len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
        word = word[1:-1]
    elif not word.startswith(("/", "~/")):
        return ""
    for name in dict.fromkeys((word, re.sub(r"\\(.)", r"\1", word))):
        try:
            if name.startswith(("/", "~/")) and '"' not in name and Path(name).expanduser().is_file():
                return name
        except OSError:  # such as a name that is too long
            continue
    return ""


async def clipboard_picture() -> bytes:
    """Return the picture in the clipboard, as PNG. Raises TrunklineError if there is none, or no program to ask."""
    program = next((one for one in CLIPBOARD_PROGRAMS if shutil.which(one[0])), None)
    if program is None:
        raise TrunklineError(
            "No program here reads pictures from the clipboard.",
            hint="Install wl-clipboard, xclip or pngpaste, or paste the path of a file.",
        )
    data = b""
    with anyio.move_on_after(CLIPBOARD_SECONDS):
        data = (await anyio.run_process(program, check=False)).stdout
    if not data.startswith(PNG):
        raise TrunklineError(
            "There is no picture in the clipboard.", hint="Copy one, or paste the path of a file."
        )
    return data
