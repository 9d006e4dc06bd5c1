"""Which adapters run the contract suite, and what each leaves out of it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SUITES = {"AdapterSuite", "ScriptedProviderSuite"}

VENDORS = {
    "anthropic": {"TestMessages": set()},
    "bedrock": {"TestConverseStream": set()},
    "gemini": {"TestGeneratedContent": {"bad_arguments"}},
    "ollama": {"TestOllama": {"bad_arguments"}},
    "openai": {"OpenAIContract": set(), "TestContract": set()},
}
"""Each vendor's classes of the suite, with the situations that its protocol cannot have."""


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_vendor_runs_the_whole_contract(vendor: str) -> None:
    """Every fault of the kit is run on each vendor's SDK: no adapter leaves a situation out but one that its protocol
    cannot have.
    """
    assert dict(_suites(vendor)) == VENDORS[vendor]


def test_no_adapter_is_without_the_contract() -> None:
    """Besides the vendors only the adapters without one are bundled: `offline`, and `engine`, which asks a program."""
    bundled = {
        folder.name for folder in (ROOT / "adapters").iterdir() if (folder / "pyproject.toml").exists()
    }
    assert bundled - VENDORS.keys() == {"offline", "engine"}
    assert all(dict(_suites(name)) for name in bundled)


def _suites(adapter: str) -> Iterator[tuple[str, set[str]]]:
    for path in sorted((ROOT / "adapters" / adapter / "tests").glob("test_*.py")):
        for found in ast.walk(ast.parse(path.read_text())):
            if isinstance(found, ast.ClassDef) and SUITES & {ast.unparse(base) for base in found.bases}:
                yield found.name, _left_out(found)


def _left_out(suite: ast.ClassDef) -> set[str]:
    """The names in ``lacks``."""
    for line in suite.body:
        if isinstance(line, ast.Assign | ast.AnnAssign) and "lacks" in ast.unparse(line).split("=")[0]:
            keys = line.value.keys if isinstance(line.value, ast.Dict) else [line.value]
            return {key.value if isinstance(key, ast.Constant) else ast.unparse(key) for key in keys if key}
    return set()
