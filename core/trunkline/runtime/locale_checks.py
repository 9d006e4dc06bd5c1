"""The languages of the web app, compared with English, which says which texts there are."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from trunkline.contracts.gateway.locale import Locale
from trunkline.plugins.ownership import OwnedItem

ENGLISH = "en"

PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_]+)\}")

MOST_NAMED = 5
"""The number of keys that a problem names; it counts the others."""


@dataclass(frozen=True, slots=True)
class CheckedLocale:
    """A language with the texts of it that are used. ``version`` changes with them. ``unknown`` are keys that English
    does not have; ``misfits`` are keys of texts that are not used, because their placeholders are not the English ones.
    """

    owner: str
    tag: str
    name: str
    texts: Mapping[str, str]
    version: str
    unknown: tuple[str, ...] = ()
    misfits: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """The sentences for whoever looks after the language; none if all texts are used."""
        found = []
        if self.unknown:
            found.append(
                f"{self.owner}: the app has no text {_named(self.unknown)}, which {self.tag} translates."
            )
        if self.misfits:
            found.append(
                f"{self.owner}: {self.tag} does not have the placeholders of the English text in "
                f"{_named(self.misfits)}, so it is shown in English."
            )
        return tuple(found)


def check_locales(locales: Iterable[OwnedItem[Locale]]) -> Mapping[str, CheckedLocale]:
    """Return the languages by their tags. There is none without English."""
    found = {one.item.tag: one for one in locales}
    if ENGLISH not in found:
        return {}
    english = found[ENGLISH].item.texts
    return {tag: _checked(found[tag], english) for tag in sorted(found)}


def _checked(one: OwnedItem[Locale], english: Mapping[str, str]) -> CheckedLocale:
    texts = one.item.texts
    known = [key for key in english if key in texts]
    misfits = [key for key in known if _placeholders(texts[key]) != _placeholders(english[key])]
    used = {key: texts[key] for key in known if key not in misfits}
    return CheckedLocale(
        owner=one.owner,
        tag=one.item.tag,
        name=one.item.name,
        texts=used,
        version=hashlib.sha256(msgspec.json.encode(used, order="deterministic")).hexdigest()[:16],
        unknown=tuple(sorted(texts.keys() - english.keys())),
        misfits=tuple(misfits),
    )


def _placeholders(text: str) -> set[str]:
    return set(PLACEHOLDER.findall(text))


def _named(keys: tuple[str, ...]) -> str:
    others = len(keys) - MOST_NAMED
    return ", ".join(keys[:MOST_NAMED]) + (f" and {others} more" if others > 0 else "")
