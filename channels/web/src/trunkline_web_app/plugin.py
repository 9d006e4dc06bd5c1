"""The web app as a plugin: its hooks."""

from collections.abc import Iterable
from pathlib import Path

import trunkline
from trunkline.api.gateway import StaticSite

FOLDER = Path(__file__).parent


@trunkline.hookimpl
def trunkline_static_sites() -> Iterable[StaticSite]:
    """The built app, or a page that says how to build it."""
    built = FOLDER / "site"
    return [StaticSite(built if (built / "index.html").is_file() else FOLDER / "unbuilt")]
