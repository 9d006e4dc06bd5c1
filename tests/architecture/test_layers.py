"""The permitted imports. The contracts are in pyproject.toml; the source is searched for what import-linter cannot
see."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from trunkline._util.lazy_names import public_modules

from .sources import ROOT, nodes, tree_of

MOST_LAYERS = 12
MOST_ENTRIES = 16


def imports(file: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, with the line. ``from a import b`` counts as ``a.b`` when that is a module of
    Trunkline, and as ``a`` otherwise.
    """
    for node in nodes(file, ast.Import):
        yield from ((alias.name, node.lineno) for alias in node.names)
    for node in nodes(file, ast.ImportFrom):
        if node.level == 0:
            module = str(node.module)
            below = {name: f"{module}.{name}" for name in (alias.name for alias in node.names)}
            yield from {
                below[name] if is_module(below[name]) else module: node.lineno for name in below
            }.items()


@cache
def is_module(name: str) -> bool:
    """Report whether the source of Trunkline has this module."""
    top, _, rest = name.partition(".")
    sources = {"trunkline": "core", "trunkline_bus": "bus"}
    path = ROOT.joinpath(sources.get(top, ""), top, *rest.split("."))
    return top in sources and (path.with_suffix(".py").exists() or (path / "__init__.py").exists())


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def python_files(*folders: str) -> list[Path]:
    return [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]


def packages() -> list[Path]:
    """The import packages of all bundled plugins."""
    found = [
        path for folder in ("plugins", "adapters", "channels") for path in (ROOT / folder).glob("*/src/*")
    ]
    return sorted(path for path in found if path.is_dir() and path.name.isidentifier())


def where(file: Path, line: int) -> str:
    return f"{file.relative_to(ROOT)}:{line}"


def test_the_contracts_of_pyproject_hold():
    """The contracts cover the layers, the independence of the bus, and NATS in the bus alone."""
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_core_is_narrow():
    """The core has at most 16 entries, and its import contract has at most 12 layers."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    (layers,) = (found["layers"] for found in tools["importlinter"]["contracts"] if found["id"] == "layers")
    assert len(layers) <= MOST_LAYERS
    core = ROOT / "core" / "trunkline"
    entries = [*core.glob("*.py"), *(file.parent for file in core.glob("*/__init__.py"))]
    assert 10 < len(entries) <= MOST_ENTRIES


def test_no_plugin_imports_another():
    """A bundled plugin imports no other bundled plugin."""
    names = {package.name for package in packages()}
    assert names, "there are bundled plugins"
    wrong = [
        f"{where(file, line)} imports {module}"
        for package in packages()
        for file in package.rglob("*.py")
        for module, line in imports(file)
        if within(module, *(names - {package.name}))
    ]
    assert wrong == []


def test_plugins_import_the_public_api_only():
    """Bundled plugins, the examples and the templates of ``plugins new`` use only what a third party may use."""
    files = [
        *(file for package in packages() for file in package.rglob("*.py")),
        *python_files("docs/examples", "core/trunkline/cli/templates"),
    ]
    wrong = [
        f"{where(file, line)} imports {module}"
        for file in files
        for module, line in imports(file)
        if within(module, "nats", "trunkline", "trunkline_bus") and not _is_public(module)
    ]
    assert wrong == []


def _is_public(module: str) -> bool:
    return module in {"trunkline", "trunkline.api"} or module in public_modules()


def test_the_core_imports_no_plugin():
    """Core and bus import no bundled plugin: they find them by entry points, like third-party ones."""
    names = tuple(package.name for package in packages())
    wrong = [
        f"{where(file, line)} imports {module}"
        for file in python_files("core", "bus")
        for module, line in imports(file)
        if within(module, *names)
    ]
    assert wrong == []


def test_the_opentelemetry_sdk_is_set_up_in_one_place():
    """Every other module uses the API, which does nothing until it is set up: by ``setup`` for a process, and by
    ``prometheus`` for ``/metrics`` alone."""
    allowed = {ROOT / "core/trunkline/telemetry" / name for name in ("setup.py", "prometheus.py")}
    wrong = [
        where(file, line)
        for file in python_files("core", "bus", "plugins", "adapters", "channels")
        if "tests" not in file.parts
        for module, line in imports(file)
        if within(module, "opentelemetry.sdk", "opentelemetry.exporter") and file not in allowed
    ]
    assert wrong == []


def test_no_prompt_without_a_terminal():
    """A confirmation is requested only by code that first checks for a terminal."""
    looking = [
        ROOT / "core/trunkline/cli" / f"{name}.py"
        for name in ("confirmation", "plugin_install", "permission_rules")
    ]
    wrong = [
        str(file.relative_to(ROOT))
        for file in python_files("core", "plugins", "adapters", "channels")
        if "click.confirm(" in file.read_text() and file not in looking
    ]
    assert wrong == []


def test_the_turn_machine_does_no_io():
    """It imports data and nothing that could read, write, wait or get the time."""
    allowed = (
        "collections",
        "contextlib",
        "dataclasses",
        "enum",
        "itertools",
        "typing",
        "trunkline.errors",
        "trunkline.contracts",
        "trunkline.workers.monitor.steps",
        "trunkline.policy",
        "trunkline_bus",
    )
    for file in (
        ROOT / "core/trunkline/workers/monitor/turn.py",
        ROOT / "core/trunkline/workers/monitor/steps.py",
    ):
        assert [where(file, line) for module, line in imports(file) if not within(module, *allowed)] == []
        assert not [*nodes(file, ast.AsyncFunctionDef), *nodes(file, ast.Await)]


def test_mypy_reads_every_plugin():
    """Where a plugin's package is missing from mypy's path, mypy takes the names that others import from it for Any."""
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    sources = {str(package.parent.relative_to(ROOT)) for package in packages()}
    assert {path for path in mypy["mypy_path"] if path.endswith("/src")} == sources
    assert sources <= {str(path.relative_to(ROOT)) for glob in mypy["files"] for path in ROOT.glob(glob)}


@pytest.mark.parametrize("folder", ["bus/trunkline_bus", "core/trunkline"])
def test_every_module_has_a_docstring(folder):
    """A module opens with a docstring."""
    silent = [file for file in python_files(folder) if file.read_text().strip() and not _docstring(file)]
    assert [str(file.relative_to(ROOT)) for file in silent] == []


def _docstring(file: Path) -> str | None:
    return ast.get_docstring(tree_of(file))
