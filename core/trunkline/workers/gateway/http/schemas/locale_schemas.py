"""The schemas of the web app's languages."""

from trunkline.workers.gateway.http.schemas.schema_base import Out


class LocaleItem(Out, frozen=True, kw_only=True):
    """A language: its BCP 47 tag and what it calls itself. ``version`` changes with its texts."""

    tag: str
    name: str
    version: str


class LocaleList(Out, frozen=True, kw_only=True):
    """The languages, in the order of their tags."""

    locales: tuple[LocaleItem, ...]


class LocaleTexts(Out, frozen=True, kw_only=True):
    """A language with its texts, by the keys of English. A key that is missing is shown in English."""

    tag: str
    name: str
    version: str
    texts: dict[str, str]
