"""The examples in README, tutorials and how-tos behave as shown."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.tmux import MISSING

from .markdown import LANGUAGES, ROOT, blocks, followed, pages
from .reader import Reader

INSTALLS = re.compile(r"\b(?:pip|plugins) (?:install|uninstall|remove)\b")
"""Commands that change the reader's ``.venv``."""

AS_PEOPLE_DO = {"README.md"}
"""Pages whose commands are all started anew, as people start them."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", followed(), ids=lambda page: str(page.relative_to(ROOT)))
def test_following_a_page_gives_the_shown_output(page: Path, tmp_path: Path) -> None:
    """Every block is run in order, in one new home, and prints the shown output, unless it is marked as not run."""
    if MISSING and any("› " in block.text for block in blocks(page)):
        pytest.skip(MISSING)
    if find_spec("pip") is None and any("pip install" in block.text for block in blocks(page)):
        pytest.skip("this virtual environment was made without pip")
    installs = any(INSTALLS.search(block.text) for block in blocks(page))
    with Reader(tmp_path, forwards=not installs and page.name not in AS_PEOPLE_DO) as reader:
        for block in blocks(page):
            reader.read(block)


def test_every_code_block_declares_its_kind() -> None:
    """A block has a language that the tests know, so none is passed over by mistake."""
    own = [page for page in pages() if page.is_relative_to(ROOT / "docs") or page.parent == ROOT]
    strange = [block.place for page in own for block in blocks(page) if block.language not in LANGUAGES]
    assert strange == []


def test_the_ten_line_plugin_of_the_readme_is_the_example() -> None:
    """README shows the dice plugin of docs/examples, which has tests of its own."""
    source = ROOT / "docs" / "examples" / "trunkline-dice" / "src" / "trunkline_dice" / "__init__.py"
    shown = [
        block.text
        for block in blocks(ROOT / "README.md")
        if "roll_dice" in block.text and block.language == "python"
    ]
    assert shown == [source.read_text()]
