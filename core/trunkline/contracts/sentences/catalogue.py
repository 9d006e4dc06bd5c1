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

    Guarantees: a key that a language lacks is shown in English. So is a text whose placeholders are not those of the
    English one.

    Not guaranteed: that a text is used. The first one with a key counts, so that a plugin cannot replace what the
    platform asks. A plugin's own keys begin with its name.
    """

    tag: str
    texts: Mapping[str, str]
