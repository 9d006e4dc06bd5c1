"""Patterns of keys with a recognizable form, in one table that refers to the documentation of each form."""

import re
from collections.abc import Iterable

import msgspec


class KeyPattern(msgspec.Struct, frozen=True):
    """The form of a kind of key. ``pattern`` matches exactly the secret. ``source`` is the documentation of the form.
    ``word``: the key is one long word, so that only long words need to be examined.
    """

    name: str
    pattern: str
    source: str
    word: bool = True


_ALONE = r"(?<![A-Za-z0-9_-])"
"""The positions where a key may begin: not in the middle of a longer word."""

_PHRASE = r"[a-z]{1,20}(?:-[a-z]{1,20}){2,}(?![A-Za-z0-9_-])"
"""Words separated by hyphens, as in the URL of a page (``sk-a-walk-in-the-mountains``). No key has this form."""

KEY_PATTERNS = (
    KeyPattern(
        "private key",
        r"-----BEGIN (?P<pem>[A-Z ]{0,20}PRIVATE KEY)-----"
        r"(?:(?:(?!-----BEGIN )(?s:.))*?-----END (?P=pem)-----|(?:(?:\s|\\n)*+[A-Za-z0-9+/=]{16,}+)++)",
        "RFC 7468; the second form is one that was cut off",
        word=False,
    ),
    KeyPattern("age identity", r"AGE-SECRET-KEY-1[0-9A-Z]{20,}", "age-encryption.org/v1"),
    KeyPattern(
        "OpenAI, Anthropic and others",
        rf"(?:sk|pk|rk)-(?!{_PHRASE})[A-Za-z0-9_-]{{20,}}",
        "their keys as they are shown",
    ),
    KeyPattern("Stripe", r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}", "docs.stripe.com/keys"),
    KeyPattern("Memory Block", r"mblk[-_][A-Za-z0-9_-]{16,}", "its keys as they are shown"),
    KeyPattern("Groq", r"gsk_[A-Za-z0-9]{20,}", "its keys as they are shown"),
    KeyPattern("Hugging Face", r"hf_[A-Za-z0-9]{30,}", "huggingface.co/docs/hub/security-tokens"),
    KeyPattern(
        "JSON web token",
        _ALONE + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        "RFC 7519, section 3",
    ),
    KeyPattern(
        "Google",
        _ALONE + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
        "cloud.google.com/docs/authentication/api-keys",
    ),
    KeyPattern("GitLab", r"glpat-[A-Za-z0-9_-]{20,}", "docs.gitlab.com/security/tokens"),
    KeyPattern(
        "GitHub",
        r"gh[opsur]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}",
        "docs.github.com, About authentication to GitHub",
    ),
    KeyPattern("Slack", r"xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{20,}", "docs.slack.dev, Tokens"),
    KeyPattern(
        "Discord bot",
        _ALONE + r"[MNO][A-Za-z0-9_-]{17,35}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
        "docs.discord.com, Authentication",
    ),
    KeyPattern(
        "Telegram bot", r"(?<![\w:])\d{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])", "core.telegram.org/bots/api"
    ),
    KeyPattern("npm", r"npm_[A-Za-z0-9]{36}\b", "docs.npmjs.com, About access tokens"),
    KeyPattern("PyPI", r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{20,}", "pypi.org/help"),
    KeyPattern("AWS", r"A(?:KI|SI)A[0-9A-Z]{16}\b", "docs.aws.amazon.com/IAM, IAM identifiers"),
    KeyPattern("bearer", r"(?<=\b[Bb]earer )[A-Za-z0-9._~+/-]{20,}=*", "RFC 6750, section 2.1", word=False),
    KeyPattern(
        "basic",
        r"(?:(?<=\bAuthorization: Basic )|(?<=\bauthorization: [Bb]asic )(?=[a-z+/]*[A-Z0-9=]))[A-Za-z0-9+/]{4,}=*",
        "RFC 7617, section 2; HTTP/2 writes names small, as sentences do (RFC 9113, section 8.2)",
        word=False,
    ),
)

_LEAST = 14
_LONG = rf"\b(?=[\w.:~+/-]{{{_LEAST}}})"
_OPENINGS = ("-----BEGIN ", "earer ", "asic ")
"""Matches a text that contains one of several words."""


def _any_of(shapes: Iterable[KeyPattern]) -> str:
    return "|".join(f"(?:{shape.pattern})" for shape in shapes)


KEY_REGEX = re.compile(
    f"{_any_of(one for one in KEY_PATTERNS if not one.word)}"
    f"|{_LONG}(?:{_any_of(one for one in KEY_PATTERNS if one.word)})"
)
"""All patterns combined; every match is a secret."""


def may_hold_key(text: str) -> bool:
    """Report whether a text may match ``KEY_REGEX``. This check is ten times as fast as the pattern, and excludes
    most texts.
    """
    return any(len(word) >= _LEAST for word in text.split()) or any(sign in text for sign in _OPENINGS)
