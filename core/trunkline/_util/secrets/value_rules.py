"""Classifies a value beside a secret's name: a placeholder, a word of a sentence, or random characters."""

import re

_REFERENCES = (
    r"none|null|nil|true|false|undefined|str|string|int|integer|bytes|bool|boolean|float|any|object|text|number|"
    r"secret(?:str)?|final|optional|required|self\..*|cls\..*|os\.\w+.*|env\..*|process\.env.*|config\..*|settings\..*|"
    r"secrets?\..*|\$.*|%.*%|\*+|x+|\.+|_+|-+|your\W?.*|my\W.*|change.?me|example.*|placeholder|todo|tbd|redacted|n/a|"
    r"await|async|new|yield|lambda|function|typeof|!(?:vault|secret|ref|sub|env|env_var|reference|include)"
)
"""Types, references and placeholders, with the keywords and YAML tags that may precede a value."""

_GOING_ON = (
    "the a an is was are were be to of for in on at by as and or not no that this these it its with without which who "
    "you we they my our his her their must should may can will has have had from see per via when where if use used "
    "uses each every one two only also never always what how why types type"
).replace(" ", "|")
"""Words that continue a sentence."""

_SAID_OF = (
    "again ask bad based better big case choose common correct denied different due easy empty encrypted enough enter "
    "expired expires fine forgotten forwarded generate generated get given gone good hard hashed here hidden "
    "invalid keep kept known leaked length long lost manager masked maximum minimum missing name needed new now off ok "
    "okay old option out parameter please policy private public rejected refused required reset revoked right rotate "
    "rotated safe same secret secure sent set shared short so stale still stolen store stored strong there too unknown "
    "unset up valid value very weak written wrong yes "
    "abgelaufen falsch geheim im in bei leer nicht richtig sehr zu weg faux obligatoire perdu vide"
).replace(" ", "|")
"""Words that describe the state of a secret, or what to do with it."""

_ENDINGS = "ed|ing|able|ible|ive|ary|ory|ous|less|ful|ly"
"""The endings of other such words."""

_HARMLESS = re.compile(f"{_REFERENCES}|{_GOING_ON}", re.IGNORECASE)
_SAID = re.compile(rf"(?:{_SAID_OF})(?:-[a-z]+)?", re.IGNORECASE)
_DESCRIBES = re.compile(rf"(?:[A-Za-z0-9]+-)?[^\W\d_]{{2,}}(?:{_ENDINGS})")
_RANDOM = re.compile(
    r"(?=\S*?\d)(?=\S*?[^\W\d_])\S+|\S*?[a-z][A-Z]\S*|\d{4,}|[^\W_]+[^\w\s'’.,/-]+\S+|\S*?[@#$%^&*+=~]\S*"
)
_COUNTED = re.compile(r"\d+-[^\W\d_]+")  # "12-letter"
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SMALL = re.compile(r"[A-Z]?[^\W\d_A-Z]+(?:['’-][^\W\d_A-Z]+)*")


def is_placeholder(value: str) -> bool:
    """Report whether a value is too short for a secret, or is a placeholder: a type, a reference, or a word such as
    "your".
    """
    return len(value) < 3 or _HARMLESS.fullmatch(value) is not None


def is_status_word(value: str) -> bool:
    """Report whether a word describes the state of a secret: "expired", "wrong", "minimum"."""
    return _SAID.fullmatch(value) is not None


def is_descriptive(value: str) -> bool:
    """Report whether a word ends like an adjective. A password may end in the same way."""
    return _DESCRIBES.fullmatch(value) is not None


def is_word(value: str) -> bool:
    """Report whether a value could be a dictionary word: only letters, with upper case only at the beginning."""
    return _SMALL.fullmatch(value) is not None


def is_random(value: str) -> bool:
    """Report whether a value looks random: letters mixed with digits, signs or inner upper case."""
    return _RANDOM.fullmatch(value) is not None and _COUNTED.fullmatch(value) is None


def opens_with_word(text: str) -> bool:
    """Report whether a blank and a plain word follow, and the word is not the name of another value (``user=``,
    ``user:``).
    """
    if not text.startswith(" "):
        return False
    found = _WORD.match(text, 1)
    return found is not None and text[found.end() : found.end() + 1] not in ("=", ":", "_", "(", "@")
