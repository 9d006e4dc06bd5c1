"""The files of a new plugin. Text only; the command is in ``plugins.py``."""

import re
from pathlib import Path

from trunkline.errors import PluginError, StorageError

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "trunkline-{name}"
version = "0.1.0"
description = "The {name} tool for Trunkline"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["trunkline"]

[project.entry-points.trunkline]
{name} = "trunkline_{module}"

[tool.hatch.build.targets.wheel]
packages = ["src/trunkline_{module}"]
"""

MODULE = '''\
"""The {name} tool: says hello. Put your own in its place."""

import trunkline


@trunkline.tool(effect="read")
def {module}_hello(who: str = "world") -> str:
    """Say hello to somebody.

    Args:
        who: Whom to greet.
    """
    return f"Hello, {{who}}!"


@trunkline.hookimpl
def trunkline_tools():
    """What this plugin adds."""
    return [{module}_hello]
'''

TEST = '''\
"""The {name} plugin, seen from outside."""

import pytest
import trunkline_{module}
from trunkline.testing.contexts import tool_context


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.anyio
async def test_says_hello_to_whom_it_is_told(tmp_path):
    """The tool greets the person that the model names."""
    (tool,) = trunkline_{module}.trunkline_tools()
    assert await tool(tool_context(tmp_path), {{"who": "Ada"}}) == "Hello, Ada!"


def test_describes_itself_to_the_model():
    """The signature is the schema, the docstring the description."""
    (tool,) = trunkline_{module}.trunkline_tools()
    assert tool.spec.name == "{module}_hello"
    assert tool.spec.description == "Say hello to somebody."
    assert "who" in tool.spec.parameters["properties"]
'''

README = """\
# trunkline-{name}

A tool for Trunkline agents.

* `pip install -e .` makes it known; `trunkline plugins list` shows it.
* `pytest` runs its tests.
* In `trunkline chat` without a model: `/tool {module}_hello who=Ada`.
"""

FILES = {
    "pyproject.toml": PYPROJECT,
    "README.md": README,
    "src/trunkline_{module}/__init__.py": MODULE,
    "tests/test_{module}.py": TEST,
}


def write_tool_plugin(name: str, folder: Path) -> Path:
    """Write the package ``trunkline-<name>`` into ``folder`` and return where it lies.

    Raises:
        PluginError: the name cannot be a package's name.
        StorageError: something is there already, or the folder cannot be written.
    """
    if NAME.fullmatch(name) is None:
        raise PluginError(
            f"A plugin cannot be called {name!r}.", hint="Use lower-case words with dashes: my-tool."
        )
    root = folder / f"trunkline-{name}"
    if root.exists():
        raise StorageError(f"{root} is there already.", hint="Choose another name or folder.")
    words = {"name": name, "module": name.replace("-", "_")}
    try:
        for path, text in FILES.items():
            target = root / path.format(**words)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.format(**words), encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"{root} cannot be written: {error.strerror}.", hint="Choose another folder."
        ) from error
    return root
