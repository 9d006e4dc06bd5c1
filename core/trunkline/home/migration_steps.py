"""The steps from each form of a home to the next, oldest first.

Add one at the end and raise ``FORMAT_VERSION`` in ``config/home_format.py``.

A step is one function of the home. It may be stopped anywhere by a crash and is then run again from its beginning, so
it must do no harm twice: look whether a file is there already, write whole files and rename them. ``copies`` names what
is copied to ``before-<form>`` first: ``memory``, ``trunkline.toml`` or ``bus``. Leave it empty only when nothing is
rewritten. ``tests/core/runtime/test_migration.py`` runs every step twice, and kills one in the middle.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from trunkline.config.editor import replace_file
from trunkline.config.renamed_settings import rename_settings
from trunkline.errors import ConfigError
from trunkline.home.paths import Home

HomePart = Literal["memory", "trunkline.toml", "bus"]


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """A step to the form ``to``. ``description`` is what it does, in a few words for people."""

    to: int
    description: str
    run: Callable[[Home], None]
    copies: tuple[HomePart, ...] = ()


def record_format(home: Home) -> None:
    """Homes of before there was a form say now which one they have. Nothing else is different in them."""


def rename_settings_of_home(home: Home) -> None:
    """``trunkline.toml`` gets today's keys (``config/renamed_settings.py``). Without old keys it is not written.

    Raises:
        ConfigError: the file has old keys and cannot be written, as one that is mounted from elsewhere.
    """
    try:
        before = home.config_file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return
    after = rename_settings(before)
    if after == before:
        return
    try:
        replace_file(home.config_file, after)
    except OSError as error:
        raise ConfigError(
            f"{home.config_file} has old names of settings and cannot be written: {error.strerror}.",
            hint='Rename them yourself. "trunkline config" shows all of them under their new names.',
        ) from error


MIGRATION_STEPS: tuple[MigrationStep, ...] = (
    MigrationStep(1, "the home says in which form it is written", record_format),
    MigrationStep(2, "settings get their new names", rename_settings_of_home, copies=("trunkline.toml",)),
)
