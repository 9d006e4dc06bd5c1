"""The page of ``trunkline doctor``: the stable ids of its checks."""

from generator.markdown import code, first_paragraph, table
from trunkline.cli.checks.runner import CHECK_TIMEOUT, CHECKS

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


def page() -> str:
    """The whole page."""
    rows = [(code(name), means) for name, means in FIRST.items()]
    rows += [(code(name), _meaning(name)) for name in CHECKS]
    note = (
        f"A check that does not finish in {CHECK_TIMEOUT:g} seconds is an error. Plugins add their "
        f"own checks "
        "with the hook "
        "[trunkline_health_checks](hooks.md#trunkline_health_checks); the output then names the plugin."
    )
    return f"{INTRODUCTION.strip()}\n\n{table(('id', 'the check passes when'), rows)}\n\n{note}"


def _meaning(name: str) -> str:
    said = first_paragraph(CHECKS[name])
    assert said.startswith(f"{name}: "), f"the docstring of the check {name} does not begin with its id"
    return said.removeprefix(f"{name}: ")
