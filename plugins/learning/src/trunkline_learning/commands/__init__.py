"""``trunkline learning``: see what was learned, and take out what should not stay. One module a verb."""

import click

from trunkline.api.cli import LazyGroup

EXAMPLES = """
trunkline learning status
trunkline learning facts --since 2026-05-01
trunkline learning playbook --model openai/gpt-5.5
trunkline learning forget pit-1a2b3c4d
"""

VERBS: dict[str, str] = {
    "status": "Show whether learning is on, and how much was learned.",
    "facts": "Show the facts that people stated about themselves, with contradictions.",
    "episodes": "Show the remembered tasks, newest first.",
    "playbook": "Show the strategies, by model and section.",
    "profile": "Show the profile, and the part of it that models receive.",
    "forget": "Remove a fact, an episode, a strategy or the profile.",
}


@click.group("learning", cls=LazyGroup, package=__name__, table=VERBS, examples=EXAMPLES)
def learning() -> None:
    """Show what was learned from finished turns, and remove parts of it.

    Learning is off until preferences.toml has "on = true" in the table [learning].
    """
