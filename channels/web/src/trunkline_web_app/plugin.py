"""The web app as a plugin: its hooks."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

import trunkline
from trunkline.api.gateway import Locale, StaticSite

FOLDER = Path(__file__).parent


@trunkline.hookimpl
def trunkline_static_sites() -> Iterable[StaticSite]:
    """The built app, or a page that says how to build it."""
    built = FOLDER / "site"
    return [StaticSite(built if (built / "index.html").is_file() else FOLDER / "unbuilt")]


@trunkline.hookimpl
def trunkline_locales() -> Iterable[Locale]:
    """The languages of the built app: English, which says which texts there are, and German."""
    files = sorted((FOLDER / "site/locales").glob("*.json"))
    return [msgspec.json.decode(file.read_bytes(), type=Locale) for file in files]
