"""The example packages of docs/examples: small, installed with pip, and used through their entry points."""

import ast
import io
import sqlite3
import sys
import tokenize
from importlib.metadata import entry_points
from pathlib import Path

import anyio
import pytest

from trunkline.testing.platform import platform

pytestmark = pytest.mark.anyio

EXAMPLES = sorted((Path(__file__).parents[2] / "docs/examples").glob("trunkline-*"))
REPLIES = (
    "import sys; asked = sys.stdin.read(); print(f'I was told {asked.count(chr(117) + \"ser:\")} things.')"
)
PROSE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_a_whole_package_of_few_lines(example: Path) -> None:
    """The count excludes imports, docstrings, comments and empty lines; the package has README, metadata and tests,
    and is installed by its name. A channel takes five more lines, for notifying the owner of approvals. A store is
    larger, in several modules."""
    module = example.name.replace("-", "_")
    sources = [file.read_text() for file in (example / "src" / module).glob("*.py")]
    limits = {"trunkline_memory_stores": 600, "trunkline_channels": 23}
    limit = next((limits[hook] for hook in limits if any(hook in source for source in sources)), 18)
    assert len(sources) == 1 or "trunkline_memory_stores" in "".join(sources)
    assert sum(len(lines_of_code(source) - import_lines(source)) for source in sources) <= limit
    assert (example / "README.md").exists() and list((example / "tests").glob("test_*.py"))
    (point,) = (point for point in entry_points(group="trunkline") if point.value == module)
    assert point.dist is not None and point.dist.name == example.name


def import_lines(text: str) -> set[int]:
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {line for node in found for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def lines_of_code(text: str) -> set[int]:
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    docs = {
        token.start
        for before, token in zip([None, *tokens], tokens, strict=False)
        if token.type == tokenize.STRING and (before is None or before.type in PROSE)
    }
    return {token.start[0] for token in tokens if token.type not in PROSE and token.start not in docs}


async def test_third_party_channel_adapter_and_store_serve_a_conversation(tmp_path: Path) -> None:
    """A letter is answered by a program and kept in one file; after a restart the conversation continues from it."""
    config = {
        "channels.enabled": ("inbox",),
        "runtime.provider_adapter": "command",
        "adapters.command.argv": [sys.executable, "-c", REPLIES],
        "memory.store": "trunkline-onefile",
    }
    for number in (1, 2):
        async with platform(tmp_path, config=config):
            assert await answered(tmp_path / "inbox", f"letter {number}") == f"I was told {number} things.\n"
    with sqlite3.connect(tmp_path / "memory" / "memory.sqlite") as file:
        records = b"".join(row[0] for row in file.execute("SELECT record FROM records"))
    assert records.count(b'"reason":"Conversation conv_') >= 2
    assert not (tmp_path / "memory" / ".git").exists()


async def answered(inbox: Path, text: str) -> str:
    await anyio.Path(inbox).mkdir(exist_ok=True)  # the channel makes it, perhaps after the platform is ready
    (inbox / "letter.txt").write_text(text)
    with anyio.fail_after(60):
        while (inbox / "letter.txt").exists():  # noqa: ASYNC110 - what is awaited happens in a folder
            await anyio.sleep(0.02)
    return (inbox / "letter.answer").read_text()
