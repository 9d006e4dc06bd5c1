"""Which paths memory allows. Rules on text only; nothing here looks at a disk.

A path is POSIX, relative to the memory root, of visible names. What is refused: absolute paths, ``..``, names that
begin with ``~``, backslashes, control characters, text that is not UTF-8, over-long names, names that secrets go by,
and whatever git uses for itself.
"""

import unicodedata
from itertools import pairwise

from trunkline._util.paths import PROTECTED_FILES, PROTECTED_NAMES
from trunkline_bus import Refusal

NAME_BYTES = 255
PATH_BYTES = 2_048
DEEPEST = 64


def normalize_path(path: str) -> str:
    """The path in its plain form (no ``.``, no doubled or trailing slashes).

    Raises:
        Refusal: ``invalid_path``, with a sentence that says which rule it breaks.
    """
    plain = normalize_folder(path)
    if not plain:
        raise path_refusal(path, "it names no file")
    return plain


def normalize_folder(path: str) -> str:
    """As ``normalize_path``, but the empty path is allowed and means the root."""
    if path.startswith("/"):
        raise path_refusal(path, "it must be relative to the memory root")
    if len(path) > PATH_BYTES or len(_encoded(path)) > PATH_BYTES:
        raise path_refusal(path, f"it is longer than {PATH_BYTES} bytes")
    names = [name for name in path.split("/") if name not in ("", ".")]
    for name in names:
        fault = name_problem(name)
        if fault:
            raise path_refusal(path, fault)
    if len(names) > DEEPEST:
        raise path_refusal(path, f"it is deeper than {DEEPEST} folders")
    if is_protected(names):
        raise path_refusal(path, "secrets go by that name, and memory keeps none")
    return "/".join(names)


def is_normalized(path: str) -> bool:
    """Report whether a path keeps the rules and is in its plain form."""
    try:
        return normalize_path(path) == path
    except Refusal:
        return False


def name_problem(name: str) -> str:
    """Return the rule that one name of a path breaks, "" when it is allowed."""
    if name == "..":
        return "it may not contain '..'"
    if name.startswith("~"):
        return "names that begin with ~ are not allowed"
    if "\\" in name:
        return "it may not contain a backslash"
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        return "it may not contain control characters"
    if len(_encoded(name)) > NAME_BYTES:
        return f"a name in it is longer than {NAME_BYTES} bytes"
    if is_git_name(name):
        return "names that begin with .git belong to git"
    return ""


def is_git_name(name: str) -> bool:
    """Report whether some file system takes the name for one of git's (``.git``, ``.GIT``, ``.g\u200cit``,
    ``git~1``).
    """
    plain = _folded(name)
    return plain.startswith(".git") or plain.split(":")[0] == "git~1"


def is_git_folder(name: str) -> bool:
    """Report whether some file system takes the name for that of git's own folder."""
    plain = _folded(name)
    return plain.split(":")[0].rstrip(" .") in (".git", "git~1")


def is_protected(names: list[str]) -> bool:
    """Report whether a path's names are those that keys and passwords go by."""
    plain = [_folded(name) for name in names]
    if plain and plain[-1].endswith(PROTECTED_NAMES):
        return True
    return any(pair in pairwise(plain) for pair in PROTECTED_FILES)


def _folded(name: str) -> str:
    """A name as the most forgiving file system reads it."""
    if name.isascii():
        return name.lower().rstrip(" .")
    letters = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(letter for letter in letters if unicodedata.category(letter) != "Cf").rstrip(" .")


def path_refusal(path: str, why: str) -> Refusal:
    """The refusal of a path. Control characters of the path are not repeated."""
    shown = path if len(path) <= 80 else path[:77] + "..."
    return Refusal("invalid_path", f"The path {ascii_safe(shown)!r} is not allowed: {why}.")


def ascii_safe(text: str) -> str:
    """Text without what cannot be encoded."""
    return text.encode("utf-8", "replace").decode("utf-8")


def parents(path: str) -> list[str]:
    """The folders above a path, outermost first, without the root."""
    names = path.split("/")
    return ["/".join(names[:depth]) for depth in range(1, len(names))]


def is_under(path: str, prefix: str) -> bool:
    """Report whether a path is the prefix itself or lies below it; everything lies below the empty prefix."""
    return not prefix or path == prefix or path.startswith(prefix + "/")


def encode_text(path: str, text: str) -> bytes:
    """Text as it is stored. Raises Refusal ``write_failure`` for text that cannot be."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal(
            "write_failure", f"{path!r} was not written: the text holds half characters (lone surrogates)."
        ) from None


def decode_text(path: str, data: bytes) -> str:
    """Return the text of a file. Raises Refusal ``invalid_path`` where it is no text."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise path_refusal(path, "it is not a text file") from None


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise path_refusal(text, "it is not valid text") from None
