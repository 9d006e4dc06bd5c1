"""Doctor and a search index that answers with errors: doctor reports it, and the suggested command repairs it."""

from pathlib import Path

import apsw
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.cli.checks.runner import run_checks
from trunkline.config import load_config

pytestmark = pytest.mark.anyio


async def reported(running: ProcessPlatform) -> tuple[str, str]:
    """Return doctor's result for search."""
    findings = await run_checks(read=lambda: load_config(running.home.path, environ=running.environ))
    (found,) = [one for one in findings if one.id == "memory.search"]
    return found.status, f"{found.summary} {found.hint}"


async def test_an_index_that_answers_with_errors_is_reported(tmp_path: Path) -> None:
    """A table of the index is dropped under a running memory: doctor reports it, and its suggestion helps."""
    async with process_platform(tmp_path / "home") as running:
        assert (await reported(running))[0] == "ok"
        with apsw.Connection(str(running.home.cache / "memory.db")) as connection:
            connection.execute("ALTER TABLE passages RENAME COLUMN kind TO odd")
        status, said = await reported(running)
        assert status == "error" and str(running.home.cache / "memory.db") in said
    for file in (tmp_path / "home/cache").glob("memory.db*"):
        file.unlink()
    async with process_platform(tmp_path / "home") as running:
        assert (await reported(running))[0] == "ok"
