"""``scripts/count_tests.py [CHECKOUT]`` prints how many assertions and test functions a checkout has.

Whoever makes the tests faster shows with it that none was dropped. The suites of ``trunkline.testing`` count, too.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("tests", "plugins", "adapters", "channels", "core/trunkline/testing", "docs/examples")


def test_files(root: Path) -> Iterator[Path]:
    """Yield the Python files that may have assertions of tests."""
    for folder in FOLDERS:
        for file in (root / folder).rglob("*.py"):
            if not {".venv", "src"}.intersection(file.relative_to(root).parts):
                yield file


def count(root: Path) -> Counter[str]:
    """Count ``assert`` statements, uses of ``pytest.raises`` and functions that are tests."""
    counts = Counter[str]()
    for file in test_files(root):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            counts["assertions"] += isinstance(node, ast.Assert)
            counts["raises"] += isinstance(node, ast.Attribute) and node.attr == "raises"
            functions = ast.FunctionDef | ast.AsyncFunctionDef
            counts["test functions"] += isinstance(node, functions) and node.name.startswith("test_")
    return counts


def main() -> None:
    """Print the counts."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]
    print(", ".join(f"{number} {what}" for what, number in count(root).items()))


if __name__ == "__main__":
    main()
