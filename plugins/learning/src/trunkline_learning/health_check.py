"""The health check of learning: reports preferences that cannot be read."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from trunkline import HealthResult
from trunkline_learning.preferences import FILE, parse_preferences_with_problem


def preferences_check(memory: Path) -> Callable[[], Awaitable[HealthResult]]:
    """The check for the memory root."""

    async def check() -> HealthResult:
        file = anyio.Path(memory / FILE)
        if await file.exists() and not await file.is_file():
            return _warning(f"{file}: it is no regular file.")
        try:
            text = await file.read_text(encoding="utf-8") if await file.exists() else None
        except (OSError, ValueError) as error:
            return _warning(f"{file}: {error}.")
        choices, problem = parse_preferences_with_problem(text, str(file))
        if problem:
            return _warning(problem)
        return HealthResult("ok", f"Learning is {'on' if choices.on else 'off'}, as {FILE} says")

    return check


def _warning(problem: str) -> HealthResult:
    return HealthResult(
        "warning", problem, "Mend it. Until then nothing is learned, and no model is told of it."
    )
