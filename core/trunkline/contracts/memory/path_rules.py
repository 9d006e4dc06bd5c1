"""The rules for paths of memory. No I/O.

A path is a POSIX path relative to the memory root. The rules refuse absolute paths, ``..``, names that begin with
``~``, backslashes, control characters, text that is not UTF-8, names that are too long, names that are typical of files
with secrets, and all names that git uses for itself.
"""

import unicodedata
from itertools import pairwise

from trunkline._util.paths import PROTECTED_FILES, PROTECTED_NAMES
from trunkline_bus import Refusal

NAME_BYTES = 255
PATH_BYTES = 2_048
DEEPEST = 64


def normalize_path(path: str) -> str:
    """Return the path in its normal form (no ``.``, no double or trailing slashes).

    Raises:
        Refusal: ``invalid_path``, with a sentence that names the rule.
    """
    plain = normalize_folder(path)
    if not plain:
        raise path_refusal(path, "it names no file")
    return plain


def normalize_folder(path: str) -> str:
    """Normalize the path of a folder as ``normalize_path`` does; the empty path is valid and means the root."""
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
    """Report whether a path is valid and in its normal form."""
    try:
        return normalize_path(path) == path
    except Refusal:
        return False


def name_problem(name: str) -> str:
    """Return the rule that a name in a path breaks; "" if the name is allowed."""
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
    """Report whether some file system treats the name as one of git's (``.git``, ``.GIT``, ``.g\u200cit``,
    ``git~1``).
    """
    plain = _folded(name)
    return plain.startswith(".git") or plain.split(":")[0] == "git~1"


def is_git_folder(name: str) -> bool:
    """Report whether some file system treats the name as that of git's own folder."""
    plain = _folded(name)
    return plain.split(":")[0].rstrip(" .") in (".git", "git~1")


def is_protected(names: list[str]) -> bool:
    """Report whether the names of a path are typical of files that hold keys and passwords."""
    plain = [_folded(name) for name in names]
    if plain and plain[-1].endswith(PROTECTED_NAMES):
        return True
    return any(pair in pairwise(plain) for pair in PROTECTED_FILES)


def _folded(name: str) -> str:
    """Return a name in the form in which the most tolerant file system compares it."""
    if name.isascii():
        return name.lower().rstrip(" .")
    letters = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(letter for letter in letters if unicodedata.category(letter) != "Cf").rstrip(" .")


def path_refusal(path: str, why: str) -> Refusal:
    """Return the refusal of a path. The text does not contain control characters of the path."""
    shown = path if len(path) <= 80 else path[:77] + "..."
    return Refusal("invalid_path", f"The path {ascii_safe(shown)!r} is not allowed: {why}.")


def ascii_safe(text: str) -> str:
    """Return the text with characters that cannot be encoded replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def parents(path: str) -> list[str]:
    """Return the folders above a path, outermost first, without the root."""
    names = path.split("/")
    return ["/".join(names[:depth]) for depth in range(1, len(names))]


def is_under(path: str, prefix: str) -> bool:
    """Report whether a path is ``prefix`` or below it. Every path is below the empty prefix."""
    return not prefix or path == prefix or path.startswith(prefix + "/")


def encode_text(path: str, text: str) -> bytes:
    """Return a text as stored bytes. Raises Refusal ``write_failure`` if the text cannot be encoded."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal(
            "write_failure", f"{path!r} was not written: the text holds half characters (lone surrogates)."
        ) from None


def decode_text(path: str, data: bytes) -> str:
    """Return the text of a file. Raises Refusal ``invalid_path`` if the file is not text."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise path_refusal(path, "it is not a text file") from None


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise path_refusal(text, "it is not valid text") from None
