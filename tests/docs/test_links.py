"""Links of the documentation lead somewhere."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .markdown import ROOT, anchors, links, pages

ALLOWED_HOSTS: set[str] = set()
"""Pages elsewhere may be linked to only on purpose: what is not here must be in the repository."""


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    """A link within the repository names a file, and behind a # a heading of it."""
    broken = []
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            broken += [] if parts.netloc in ALLOWED_HOSTS else [link]
            continue
        target = (page.parent / parts.path).resolve() if parts.path else page
        if not target.exists() or (parts.fragment and parts.fragment not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_the_index_lists_every_page() -> None:
    """docs/index.md leads to every page of the documentation."""
    index = ROOT / "docs" / "index.md"
    listed = {(index.parent / urlsplit(link).path).resolve() for link in links(index)}
    own = {page for page in pages() if page.is_relative_to(ROOT / "docs") and page != index}
    assert sorted(str(page.relative_to(ROOT)) for page in own - listed) == []
