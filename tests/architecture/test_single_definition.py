"""Rules that many modules apply are defined in one module and imported by the others."""

import ast
from collections.abc import Iterator
from pathlib import Path

from .sources import nodes
from .test_names import MODULES

BLOCK_RULES = "trunkline.contracts.blocks.paths"


def test_the_rule_for_block_names_is_written_once():
    """The pattern of a block's name is in one module: a copy elsewhere could diverge from it."""
    copies = [name for name, text in strings() if "[a-z0-9][a-z0-9-]{0,31}" in text]
    assert copies == [BLOCK_RULES], f"import BLOCK_NAME or is_block_name from {BLOCK_RULES} instead: {copies}"


def test_paths_of_blocks_are_joined_in_one_module():
    """A block's folder and its file in memory are joined by two functions, and nowhere by hand."""
    joined = [name for name, file in MODULES.items() for _ in joined_block_paths(file)]
    assert not joined, f"use block_folder or block_file_path of {BLOCK_RULES} instead: {joined}"


def strings() -> Iterator[tuple[str, str]]:
    """The string constants of all modules that are shipped, without their documentation."""
    for name, file in MODULES.items():
        said = {id(node.value) for node in nodes(file, ast.Expr)}
        for node in nodes(file, ast.Constant):
            if isinstance(node.value, str) and id(node) not in said:
                yield name, node.value


def joined_block_paths(file: Path) -> Iterator[ast.JoinedStr]:
    """The f-strings of a module that begin with the folder of blocks."""
    for node in nodes(file, ast.JoinedStr):
        if node.values:
            first = node.values[0]
            if isinstance(first, ast.Constant) and str(first.value).lstrip("/").startswith("blocks/"):
                yield node
