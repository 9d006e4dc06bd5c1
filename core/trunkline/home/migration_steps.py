"""The steps from each form of a home to the next, oldest first.

Add one at the end and raise ``FORM`` in ``format_version.py``.

A step is one function of the home. It may be stopped anywhere by a crash and is then run again from its beginning, so
it must do no harm twice: look whether a file is there already, write whole files and rename them. ``copies`` names what
is copied to ``before-<form>`` first: ``memory``, ``trunkline.toml`` or ``bus``. Leave it empty only when nothing is
rewritten. ``tests/core/runtime/test_migration.py`` runs every step twice, and kills one in the middle.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from trunkline.home.paths import Home

HomePart = Literal["memory", "trunkline.toml", "bus"]


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """A step to the form ``to``. ``says`` is what it does, in a few words for people."""

    to: int
    description: str
    run: Callable[[Home], None]
    copies: tuple[HomePart, ...] = ()


def record_format(home: Home) -> None:
    """Homes of before there was a form say now which one they have. Nothing else is different in them."""


MIGRATION_STEPS: tuple[MigrationStep, ...] = (
    MigrationStep(1, "the home says in which form it is written", record_format),
)
