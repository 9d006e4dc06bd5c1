"""The check of ``trunkline doctor``: files of schedules that a person must correct."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio.to_thread

from trunkline import HealthResult
from trunkline.api.files import SettingsFileError
from trunkline.api.memory import BLOCKS_FOLDER
from trunkline.api.schedule import SCHEDULES_FOLDER, schedule_of
from trunkline_pulse.schedule_file import read_schedule


def schedules_check(memory: Path) -> Callable[[], Awaitable[HealthResult]]:
    """Return the check of the schedules of all blocks below a memory root."""

    async def check() -> HealthResult:
        return await anyio.to_thread.run_sync(_check, memory)

    return check


def _check(memory: Path) -> HealthResult:
    problems: list[str] = []
    count = 0
    for file in sorted(memory.glob(f"{BLOCKS_FOLDER}/*/{SCHEDULES_FOLDER}/*.toml")):
        path = file.relative_to(memory).as_posix()
        count += 1
        if schedule_of(path) is None:
            problems.append(f"{path}: its name is not one of a schedule.")
            continue
        if not file.is_file():  # a pipe would wait for a writer
            problems.append(f"{path}: it is not a regular file.")
            continue
        try:
            read_schedule(path, file.read_text(encoding="utf-8"))
        except SettingsFileError as error:
            problems.append(str(error))
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{path}: {error}.")
    if problems:
        return HealthResult(
            "warning",
            " ".join(problems),
            "Correct the files. These schedules do not run until then; the others do.",
        )
    return HealthResult("ok", f"{count} schedules" if count else "No schedules")
