"""A sentence by its key, and the sentences of a language, as the platform and plugins add them."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec


class Sentence(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sentence that is put into words where a person reads it: its key, and the values for its placeholders."""

    key: str
    values: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class SentenceCatalogue:
    """Sentences of a language. ``tag`` is its BCP 47 tag, such as ``fr`` or ``pt-BR``. ``texts`` has texts by their
    keys, with placeholders such as ``{name}``, which may come in any order.

    Guarantees: a key that a tag lacks is shown in its parent language (``de`` for ``de-AT``), and else in English. A
    text whose placeholders are not those of the English one counts as missing.

    Not guaranteed: that a text is used. The first one with a key counts. In a language that the platform speaks, in
    every region of it too, the platform's sentences are always its own, so that a plugin cannot replace what it asks. A
    plugin's own keys begin with its name.
    """

    tag: str
    texts: Mapping[str, str]
