"""The page of ``trunkline doctor``: the stable ids of its checks."""

from collections.abc import Callable

from generator.markdown import code, first_paragraph, table
from trunkline.cli.checks.runner import CHECK_TIMEOUT, CHECKS
from trunkline_git_store.health_checks import CHECKS as STORE_CHECKS

INTRODUCTION = """
# What `trunkline doctor` checks

Each check has a stable id, a status (`ok`, `warning`, `error`, `skipped`), a summary, and a hint when action is
needed. The exit status is 1 when a check has the status `error`. The command changes nothing, and connects to nothing
but the configured bus unless you give `--online`. `--json` prints the same as JSON. [Recover from common
errors](../how-to/recover.md) explains the fixes.
"""

FIRST = {
    "python.version": "the Python version is 3.11 or later.",
    "config.valid": "`trunkline.toml` and the environment hold only known settings, with valid values.",
}


STORE = "The memory store adds its own checks. Those of the default store:"


def page() -> str:
    """The whole page."""
    rows = [(code(name), means) for name, means in FIRST.items()]
    rows += [(code(name), _meaning(name, check)) for name, check in CHECKS.items()]
    store = [(code(name), _meaning(name, check)) for name, check in STORE_CHECKS.items()]
    note = (
        f"A check that does not finish in {CHECK_TIMEOUT:g} seconds is an error. Plugins add their "
        f"own checks "
        "with the hook "
        "[trunkline_health_checks](hooks.md#trunkline_health_checks); the output then names the plugin."
    )
    head = ("id", "the check passes when")
    tables = f"{table(head, rows)}\n\n{STORE}\n\n{table(head, store)}"
    return f"{INTRODUCTION.strip()}\n\n{tables}\n\n{note}"


def _meaning(name: str, check: Callable[..., object]) -> str:
    said = first_paragraph(check)
    assert said.startswith(f"{name}: "), f"the docstring of the check {name} does not begin with its id"
    return said.removeprefix(f"{name}: ")
