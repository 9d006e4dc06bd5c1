"""The steps from each format of a home to the next, oldest first.

To add a step, append it and raise ``FORMAT_VERSION`` in ``config/home_format.py``.

A step is a function of the home. It may be interrupted at any point and is then run again from its beginning, so
running it twice must be safe: check whether a file exists, write whole files and rename them. ``copies`` names the
parts that are copied to ``before-<format>`` first: ``memory``, ``trunkline.toml`` or ``bus``. It may be empty only if
the step rewrites nothing. ``tests/core/runtime/test_migration.py`` runs every step twice, and interrupts a step in the
middle.
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
    """A step to the format ``to``. ``description`` says in a few words what the step does."""

    to: int
    description: str
    run: Callable[[Home], None]
    copies: tuple[HomePart, ...] = ()


def record_format(home: Home) -> None:
    """Record the format of a home that is older than format numbers. Nothing else changes."""


def rename_settings_of_home(home: Home) -> None:
    """Rename the settings in ``trunkline.toml`` (``config/renamed_settings.py``). A file without old keys is not
    written.

    Raises:
        ConfigError: the file has old keys and cannot be written, for example because it is mounted read-only.
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
    MigrationStep(1, "record the format of the home", record_format),
    MigrationStep(2, "rename settings", rename_settings_of_home, copies=("trunkline.toml",)),
)
