"""Migrates an older home to this version's format, step by step. ``migration_steps.py`` has the steps.

The format is recorded after each step is done. If a step is interrupted, the next start repeats it, because the home
still has the recorded format.
"""

import fcntl
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from trunkline.config.home_format import read_format, require_known_format, write_format
from trunkline.home.migration_steps import MIGRATION_STEPS, MigrationStep
from trunkline.home.paths import RESTORING, Home, storage_errors

log = logging.getLogger(__name__)

KEPT = "before"


def migrate(home: Home, steps: Sequence[MigrationStep] = MIGRATION_STEPS) -> list[MigrationStep]:
    """Migrate a prepared home to the newest format, and return the steps that ran. A lock serializes processes.

    Raises:
        NewerFormatError: a newer version wrote the home; nothing was changed.
        StorageError: a file cannot be read or written.
    """
    newest = steps[-1].to
    require_known_format(home.path, newest)
    with storage_errors(home.path), _migration_lock(home):
        mark = read_format(home.path)
        if mark is None:
            write_format(home.path, newest)
            return []
        todo = [step for step in steps if step.to > mark.format]
        for step in todo:
            log.info("migrating the home to format %d: %s", step.to, step.description)
            _copy(home, step)
            step.run(home)
            write_format(home.path, step.to)
        return todo


def _copy(home: Home, step: MigrationStep) -> None:
    """Copy the files that the step rewrites, unless an interrupted attempt has copied them."""
    target = home.path / f"{KEPT}-{step.to}"
    if not step.copies or target.exists():
        return
    draft = home.path / f"{RESTORING}{target.name}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    for part in step.copies:
        source = home.memory if part == "memory" else home.path / part
        if source.is_dir():
            shutil.copytree(source, draft / part, symlinks=True)
        elif source.exists():
            shutil.copy2(source, draft / part)
    draft.replace(target)


@contextmanager
def _migration_lock(home: Home) -> Iterator[None]:
    path = Path(home.run / "migration.lock")
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
