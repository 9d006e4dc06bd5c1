"""Patterns for a secret beside its name, as people and programs write it. Each pattern is matched at the end of a
name.

Every quantifier is bounded, or is possessive and followed by nothing that can fail, so any input is searched in
linear time.
"""

import re
from typing import NamedTuple

Span = tuple[int, int]
"""The start and end of a secret in its text."""

_BLANK = r"[ \t\u00a0]{0,80}"
_MOST = 4096
"""The largest number of characters of a quoted value. A longer value is no password."""

_BEHIND = 80
"""The number of characters after a value that are examined."""

_QUOTED = (
    rf'(?P<quote>")(?P<quoted>(?:\\.|[^"\\\n]){{1,{_MOST}}})(?=")'
    rf"""|(?P<mark>"{{3}}|'{{3}}|\\+"|\\*'|`)(?P<marked>(?:(?!(?P=mark))[^\n]){{1,{_MOST}}}?)(?=(?P=mark))"""
)
_CODE = r"""[^\s"'`\\;&|<>(){}\[\]"""

ASSIGNED = re.compile(
    rf"""[*_]{{0,2}}(?P<closed>\\*["'`])?{_BLANK}(?P<sign>=>|:=|=|:|：)[*_]{{0,2}}
    (?:{_BLANK}|(?(closed)\s{{0,200}}|(?!)))
    (?:(?:[rRbBfFuU]{{1,2}}(?=["']))?(?:{_QUOTED})|(?!\w{{1,20}}://)(?P<bare>{_CODE},]++)(?P<called>[(\[])?)""",
    re.VERBOSE,
)
"""``password=x``, ``"password": "x"``, ``**Password:** x``, ``password = r"x"``. An address is left to what
looks for passwords in it."""

FLAG = re.compile(rf"[ \t](?:{_QUOTED}|(?P<bare>(?!-){_CODE}]++))")
"""``--password x``. In a manual, several blanks separate a flag and its description."""

_FOR = r"(?:for|of|to|on|at|in|für|zu|zum|zur|von|vom)"
_IS = r"(?:is|was|are|becomes|ist|war|lautet|heißt|est|es|è)"
_NOW = r"(?:now|still|currently|simply|just|called|jetzt|noch)"
IN_SENTENCE = re.compile(
    rf"""(?:[ ]{_FOR}(?:[ ][^\s.;:!?=|]{{1,30}}){{1,4}}?)?
    [ ](?P<sign>{_IS}(?:[ ]{_NOW})?(?:[ ]set[ ]to)?|to):?[ ]{{1,4}}
    (?:{_QUOTED}|(?P<bare>[^\s"'`<>{{}}\[\]()]{{1,256}}?)(?=[.,;:)]*(?:[\s"'`<>{{}}\[\]()]|$)))""",
    re.VERBOSE | re.IGNORECASE,
)
"""``my password is x``, ``the password for the router was set to x``, ``change the password to x``."""

AFTER_BLANK = re.compile(rf"[ \t]{{1,20}}(?:{_QUOTED})")
"""``IDENTIFIED BY PASSWORD 'x'``."""

LOGIN_PASSWORDS = re.compile(
    r"(?<=://)[^\s:/@?#]{0,128}:(?P<in_address>[^\s:/@?#<>{}$\[\]]{3,256})(?=@)"
    r"|\blogin[ \t]{1,20}\S{1,128}[ \t]{1,20}password[ \t]{1,20}(?P<in_netrc>\S{3,256})"  # curl.se, .netrc
    r"""|\bcurl(?=[ ])[^\n]{0,200}?[ ](?:-u|--user|--proxy-user)[ =]{0,2}["']?[^\s:"']{1,128}:"""
    r"""(?P<for_curl>[^\s"'<>{}$]{3,256})"""
)
"""A password after the login name."""


def may_hold_login(text: str) -> bool:
    """Report whether a text may match ``LOGIN_PASSWORDS``; this check is faster than the pattern."""
    return "://" in text or "login" in text or "curl" in text


class Assignment(NamedTuple):
    """The text after a name. ``sign`` is the text between name and value, ``quote`` the quotation mark around the
    value, ``rest`` the text after the value. ``closed``: the name is quoted. ``called``: the value is a function
    call.
    """

    value: str
    span: Span
    sign: str
    quote: str
    closed: bool
    called: bool
    rest: str


def match_assignment(way: re.Pattern[str], text: str, at: int) -> Assignment | None:
    """Match one notation after the name that ends at ``at``. Return the assignment, or None."""
    found = way.match(text, at)
    if found is None:
        return None
    held = found.groupdict()
    kind = next(kind for kind in ("quoted", "marked", "bare") if held.get(kind) is not None)
    return Assignment(
        value=found[kind],
        span=found.span(kind),
        sign=held.get("sign") or "",
        quote=held["quote"] or held["mark"] or "",
        closed=held.get("closed") is not None,
        called=held.get("called") is not None,
        rest=text[found.end() : found.end() + _BEHIND],
    )
