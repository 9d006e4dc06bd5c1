"""The reference agrees with the code."""

import inspect
import re
import subprocess
import sys

import trunkline
import trunkline_bus
from trunkline.cli.checks.runner import CHECKS
from trunkline.contracts import hooks as hookspecs
from trunkline.errors import FIXED_SENTENCES
from trunkline.workers.monitor.turn import TRANSITIONS

from .markdown import REFERENCE, ROOT


def test_the_reference_is_up_to_date() -> None:
    """Drawing it again changes nothing; if this fails, run ``make docs``."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nRun: make docs"


def test_every_hook_is_documented() -> None:
    """Each hook has a heading, its arguments and an example."""
    page = (REFERENCE / "hooks.md").read_text()
    sections = dict(re.findall(r"^### (trunkline_\w+)\n(.*?)(?=^##|\Z)", page, re.DOTALL | re.MULTILINE))
    hooks = {name: hook for name, hook in vars(hookspecs).items() if name.startswith("trunkline_")}
    assert set(sections) == set(hooks)
    for name, hook in hooks.items():
        assert "```python" in sections[name]
        assert all(argument in sections[name] for argument in inspect.signature(hook).parameters)


def test_every_public_name_has_a_docstring() -> None:
    """Every export of ``trunkline`` and ``trunkline_bus`` has a docstring. Type aliases cannot have one."""
    silent = [
        f"{module.__name__}.{name}"
        for module in (trunkline, trunkline_bus)
        for name in module.__all__
        if (inspect.isclass(found := getattr(module, name)) or inspect.isroutine(found))
        and not inspect.getdoc(found)
    ]
    assert silent == []


def test_errors_checks_and_transitions_are_all_there() -> None:
    """No code, check id or transition is missing from its page."""
    errors, doctor, turn = ((REFERENCE / f"{name}.md").read_text() for name in ("errors", "doctor", "turn"))
    assert all(
        f"`{code.value}`" in errors and sentence in errors for code, sentence in FIXED_SENTENCES.items()
    )
    assert all(f"`{check}`" in doctor for check in CHECKS)
    rows = [
        f"| `{phase.value}` | `{entry.__name__}` |" for phase, row in TRANSITIONS.items() for entry in row
    ]
    assert [row for row in rows if row not in turn] == []


def test_the_changelog_has_this_version() -> None:
    """The first version in CHANGELOG.md is the one of the package."""
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == trunkline.__version__
