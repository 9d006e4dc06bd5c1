"""The page of ``trunkline doctor``: the stable ids of its checks."""

from generator.markdown import code, first_paragraph, table
from trunkline.cli.checks.runner import CHECK_TIMEOUT, CHECKS

INTRODUCTION = """
# What `trunkline doctor` checks

Each check has an id that stays the same, a status (`ok`, `warning`, `error`, `skipped`), a sentence, and a hint when
there is something to do. The exit status is 1 when a check says `error`. Nothing is changed, and nothing goes out to
the network unless you say `--online`. `--json` prints the same for programs.
[Recover from common errors](../how-to/recover.md) goes through what to do.
"""

FIRST = {
    "python.version": "at least 3.11.",
    "config.valid": "`trunkline.toml` and the environment hold only settings that exist, with values that fit.",
}


def page() -> str:
    """The whole page."""
    rows = [(code(name), means) for name, means in FIRST.items()]
    rows += [(code(name), _meaning(name)) for name in CHECKS]
    note = (
        f"A check that does not end in {CHECK_TIMEOUT:g} seconds is an error. Plugins add checks of their own "
        "with the hook "
        "[trunkline_health_checks](hooks.md#trunkline_health_checks); the line then names the plugin."
    )
    return f"{INTRODUCTION.strip()}\n\n{table(('id', 'what is well'), rows)}\n\n{note}"


def _meaning(name: str) -> str:
    said = first_paragraph(CHECKS[name])
    assert said.startswith(f"{name}: "), f"the docstring of the check {name} does not begin with its id"
    return said.removeprefix(f"{name}: ")
