"""Keys and passwords stay out of memory: a rule that sees every change before it is committed (RLM-F21, C13).

``api_key=...``, ``token: ...`` and the like become ``[REDACTED]``, in every file of text and in every layer. It is a
net under people and models who paste such things, and text alone cannot tell a password from a word: what is plainly
a reference, a type, a call or a placeholder is left as it is, so that notes and code about secrets survive.
"""

import re
from collections.abc import Iterable

from trunkline.abc.memory import Change

MARK = "[REDACTED]"

_SHAPES = re.compile(
    r"-----BEGIN (?P<pem>[A-Z ]{0,20}PRIVATE KEY)-----(?:(?!-----BEGIN ).)*?-----END (?P=pem)-----"
    r"|\b(?:sk|pk|rk)-[A-Za-z0-9_-]{20,}"  # OpenAI, Anthropic and those who copied them
    r"|\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}"  # Stripe
    r"|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"  # JSON web tokens
    r"|(?<![A-Za-z0-9_-])AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"  # Google
    r"|\bglpat-[A-Za-z0-9_-]{20,}"
    r"|\bgh[opsur]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|(?<=\bBearer )[A-Za-z0-9._~+/-]{20,}=*",
    re.DOTALL,
)
"""Keys that can be told by their look."""

_HARMLESS = re.compile(
    r"none|null|nil|true|false|undefined|str|string|int|integer|bytes|bool|boolean|float|any|object|secret(?:str)?|"
    r"optional|required|self\..*|cls\..*|os\.\w+.*|env\..*|process\.env.*|config\..*|settings\..*|secrets?\..*|"
    r"\$.*|%.*%|\*+|x+|\.+|your\W?.*|my\W.*|change.?me|example.*|placeholder|todo|redacted|"
    r"the|a|an|is|was|are|were|be|to|of|for|in|on|at|by|as|and|or|not|no|that|this|these|it|its|with|without|which|who|you|"
    r"we|they|my|our|his|her|their|must|should|may|can|will|has|have|had|from|see|per|via|when|where|if|use|used|uses|each|"
    r"every|one|two|only|also|never|always|what|how|why",
    re.IGNORECASE,
)
"""Values that are no secret: types, references, placeholders, and the words that go on in a sentence."""

_LOGIN = re.compile(
    r"(?<=://)(?P<name>[^\s:/@?#]{0,128}):(?P<bare>[^\s:/@?#<>{}$\[\]]{3,256})(?=@)(?P<closed>)"
)
"""A name and a password in an address."""

_BLANK = r"[ \t\u00a0]{0,80}"

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_LITERAL = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class Redaction:
    """The rule. ``names`` are what secrets go by; without any only keys with a look of their own are found."""

    def __init__(self, names: Iterable[str]) -> None:
        self._words = tuple(name.replace("_", "").casefold() for name in names)
        spelled = "|".join(re.escape(name).replace("_", "[_ -]?") for name in names) or r"(?!)"
        self._named = re.compile(
            rf"""(?:(?<![A-Za-z0-9])|(?-i:(?<=[a-z0-9])(?=[A-Z])))
            (?P<name>(?:{spelled})(?:[_-]?(?:access[_-]?)?key)?)(?![A-Za-z0-9_])
            (?P<between>[*_]{{0,2}}(?P<closed>\\*["'`])?{_BLANK}(?:=>|:=|=|:|：)[*_]{{0,2}}
            (?:{_BLANK}|(?(closed)\s{{0,200}}|(?!))))
            (?:"(?P<quoted>(?:\\.|[^"\\\n]){{1,4096}})(?=")
            |(?P<mark>"{{3}}|'{{3}}|\\+"|\\*'|`)(?P<marked>(?:(?!(?P=mark))[^\n]){{1,4096}}?)(?=(?P=mark))
            |(?P<bare>[^\s"'`\\,;&|<>(){{}}\[\]]++)(?![(\[]))""",
            re.IGNORECASE | re.VERBOSE,
        )

    def __call__(self, change: Change) -> Change:
        """The change without the secrets in what it adds."""
        files = {path: self._file(data, change.known.get(path, 0)) for path, data in change.files.items()}
        if all(files[path] is data for path, data in change.files.items()):
            return change
        return Change(files, actor=change.actor, reason=change.reason, scope=change.scope, known=change.known)

    def text(self, text: str) -> str:
        """A text without the secrets in it."""
        return self._named.sub(self._replaced, _LOGIN.sub(self._replaced, _SHAPES.sub(MARK, text)))

    def _file(self, data: bytes | None, known: int) -> bytes | None:
        """Only what is new of a file that grew is looked at; a line is looked at whole."""
        if data is None:
            return None
        start = data.rfind(b"\n", 0, known) + 1 if known else 0
        fresh = data[start:]
        try:
            text = fresh.decode("utf-8")
        except UnicodeDecodeError:
            return data
        cleaned = self.text(text)
        return data if cleaned == text else data[:start] + cleaned.encode("utf-8")

    def _replaced(self, found: re.Match[str]) -> str:
        groups = found.groupdict()
        value = groups.get("quoted") or groups.get("marked") or groups["bare"] or ""
        if self._harmless(found, value):
            return found[0]
        at = found.end() - len(value) - found.start()
        return found[0][:at] + MARK

    def _harmless(self, found: re.Match[str], value: str) -> bool:
        """Whether a value is plainly no secret."""
        if len(value) < 3 or MARK in value or _HARMLESS.fullmatch(value):
            return True
        if found["bare"] and found["closed"] and _LITERAL.fullmatch(value):
            return True  # a JSON number or constant; putting a text there would break the file
        name = found["name"].casefold()
        if "token" in name and _NUMBER.fullmatch(value) and len(value) < 6:
            return True  # max_token: 4096
        plain = re.sub(r"[^a-z0-9]", "", value.casefold())
        return bool(found["bare"]) and plain.endswith(self._words)  # password=password, token: access_token
