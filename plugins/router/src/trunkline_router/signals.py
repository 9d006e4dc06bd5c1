"""Signals of the kind of work in a message, found without a model: greetings, addresses, files (MN-F5, MN-F6). Pure."""

import re

from trunkline_router.category import Category

TRIVIAL_WORDS = 6
"""A message without a signal and with at most this many words is no task that is worth splitting."""

_GREETINGS = re.compile(
    r"(?:hi|hello|hey|hiya|howdy|yo|greetings|thanks?|thank you|thx|cheers|bye|goodbye|see you|"
    r"good (?:morning|afternoon|evening|night)|how are you|"
    r"hallo|moin|danke|tsch[uü]ss|hola|gracias|bonjour|merci|salut|ciao)"
    r"(?: (?:there|all|everyone|again|so much|very much|a lot|you))*",
    re.IGNORECASE,
)
_URL = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_NOT_AFTER = r"(?![A-Za-z0-9])"
_IMAGE = re.compile(rf"\.(?:png|jpe?g|gif|webp|bmp|tiff?|heic|svg){_NOT_AFTER}", re.IGNORECASE)
_DOCUMENT = re.compile(rf"\w\.(?:pdf|docx?|csv|xlsx?|pptx?|json){_NOT_AFTER}", re.IGNORECASE)
_CODE = re.compile(
    r"\w\.(?:py|pyi|ipynb|[jt]sx?|mjs|rs|go|java|kt|swift|c|cc|cpp|h|hpp|cs|rb|php|sh|bash|sql|html?|css|scss|vue|"
    rf"ya?ml|toml|ini|cfg|lock|md|rst|txt|xml|gradle|tf){_NOT_AFTER}",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?:^|[\s\"'`(])(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]+)*")


def is_greeting(text: str) -> bool:
    """Report whether the message is a greeting or a thank-you and nothing else."""
    words = " ".join(re.sub(r"[^\w\s]", " ", text).split())
    return _GREETINGS.fullmatch(words) is not None


def signals(text: str, *, has_files: bool = False) -> frozenset[str]:
    """Return the signals in a message. ``has_files`` is true if the message brings images or documents."""
    without = _URL.sub(" ", text)
    found = {
        "greeting": is_greeting(text),
        "url": without != text,
        "image": has_files or _IMAGE.search(without) is not None,
        "document": _DOCUMENT.search(without) is not None,
        "path": _PATH.search(without) is not None or _CODE.search(without) is not None,
    }
    return frozenset(name for name, is_present in found.items() if is_present)


_CATEGORY_OF: dict[str, Category] = {
    "greeting": "simple_qa",
    "url": "research",
    "image": "knowledge",
    "document": "knowledge",
    "path": "code",
}


def obvious_category(present: frozenset[str]) -> Category | None:
    """Return the category that signals decide: that of a single one, ``full`` for several; None without any."""
    if len(present) > 1:
        return "full"
    return next((_CATEGORY_OF[one] for one in present), None)


def is_trivial(text: str, present: frozenset[str]) -> bool:
    """Report whether the message is too small to be split into steps: empty, or short and without a signal."""
    return not text.strip() or (not (present - {"greeting"}) and len(text.split()) <= TRIVIAL_WORDS)
