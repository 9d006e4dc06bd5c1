"""The public API: ``trunkline`` and the modules of ``trunkline.api``, loaded when used, and cheap to import."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import trunkline
from trunkline._util.lazy_names import FACE, find_public, public_modules, public_names
from trunkline._util.renamed_names import RENAMED_NAMES

MOST_NAMES = 60

HEAVY = {
    "openai",
    "starlette",
    "uvicorn",
    "rich",
    "prompt_toolkit",
    "pygit2",
    "apsw",
    "click",
    "opentelemetry.sdk",
}
"""The vendors', servers', terminals' and stores' libraries, which stay out until their worker runs."""

NEEDED = {"trunkline.api.nlp": {"apsw"}, "trunkline.api.cli": {"click"}, "trunkline.api.testing": {*HEAVY}}
"""Those of them that a module of the API is about."""


def modules_after(code: str) -> set[str]:
    """The modules of a fresh interpreter after some code, besides those it starts with."""
    script = f"import sys; before = set(sys.modules); {code}; print(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_the_public_api_is_small() -> None:
    """``trunkline`` has at most 60 names, and the reference names the 25, at most, that the author of a tool needs."""
    names = set(public_names(FACE))
    assert len(names) <= MOST_NAMES
    page = (Path(__file__).parents[2] / "docs/reference/api.md").read_text()
    (listed,) = re.findall(r"The author of a tool needs at most these names: (.*)\.", page)
    needed = {name.strip("`") for name in listed.split(", ")}
    assert 20 <= len(needed) <= 25
    assert names >= needed
    assert dir(trunkline) == sorted(names)


def test_a_public_name_is_in_one_module() -> None:
    """No name is in two public modules, so ``find_public`` and the reference have one answer."""
    places = [(name, module) for module in public_modules() for name in public_names(module)]
    assert len(places) == len({name for name, _ in places})


@pytest.mark.parametrize("module", public_modules())
def test_every_public_name_exists(module: str) -> None:
    """Every name declared to a type checker can be imported, has a docstring, and is in ``import *``, which has no
    other."""
    found = importlib.import_module(module)
    assert found.__doc__
    for name in public_names(module):
        value = getattr(found, name)
        assert value is not None
        assert not isinstance(value, type) or value.__doc__, name
    assert sorted(found.__all__) == dir(found) == sorted(public_names(module))


def test_an_unknown_name_is_an_attribute_error() -> None:
    """It behaves like every module, so that ``hasattr`` and ``getattr`` with a default work."""
    with pytest.raises(AttributeError, match="no attribute 'Toll'"):
        trunkline.Toll  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(trunkline, "Toll")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ModelAdapter", "trunkline.api.model.ModelAdapter"),
        ("Meant", "trunkline.api.tool.CanonicalCall"),
        ("beneath", "trunkline.api.paths.open_beneath"),
    ],
)
def test_a_name_that_moved_is_refused_with_the_new_one(old: str, new: str) -> None:
    """``from trunkline import X`` says where X is now."""
    with pytest.raises(ImportError, match=rf"^trunkline\.{old} is now {new}$"):
        exec(f"from trunkline import {old}")


def test_every_renamed_name_exists() -> None:
    """The table of former names leads to names that are there."""
    renamed = [(old, new) for table in RENAMED_NAMES.values() for old, new in table.items()]
    assert [new for _, new in renamed if find_public(new) is None] == []
    assert [old for old in RENAMED_NAMES["trunkline"] if find_public(old)] == []


@pytest.mark.parametrize("module", public_modules())
def test_the_import_costs_next_to_nothing(module: str) -> None:
    """A public module loads itself and a few modules of Python's own, and not asyncio."""
    loaded = modules_after(f"import {module}")
    assert {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names} <= {
        "trunkline",
        "trunkline.api",
        "trunkline._util",
        "trunkline._util.lazy_names",
        module,
    }
    assert "asyncio" not in loaded
    assert len(loaded) < 50


@pytest.mark.parametrize("module", public_modules())
def test_the_public_api_loads_modules_lazily(module: str) -> None:
    """All names of a module together load no library that the module is not about."""
    heavy = HEAVY - NEEDED.get(module, set())
    loaded = modules_after(f"from {module} import *")
    assert not [name for name in loaded if any(name == h or name.startswith(f"{h}.") for h in heavy)]


def test_a_hook_needs_only_pluggy() -> None:
    """Marking hooks loads neither messages nor the bus."""
    assert not {
        module
        for module in modules_after("import trunkline; trunkline.hookimpl")
        if "trunkline_bus" in module
    }
