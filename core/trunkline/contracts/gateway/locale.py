"""A language of the web app, as a plugin adds it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Locale:
    """A language of the web app. ``tag`` is its BCP 47 tag, such as ``fr`` or ``pt-BR``, and ``name`` is what it calls
    itself. ``texts`` has texts by the keys of English, which ``GET /api/locales/en`` lists.

    Guarantees: everybody who reaches the port may read it, without a credential. A key that is missing is shown in
    English. So is a text whose placeholders, such as ``{name}``, are not those of the English text.

    Not guaranteed: that the language is offered. Of several with one tag the first one counts, so that a plugin cannot
    replace the texts of the app; and where no web app is built there is no language at all.
    """

    tag: str
    name: str
    texts: Mapping[str, str]
