"""What ``trunkline doctor`` finds out about learning: choices of the owner that cannot be read."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from trunkline import HealthResult
from trunkline_learning.preferences import FILE, learning_and_problem


def check_of(memory: Path) -> Callable[[], Awaitable[HealthResult]]:
    """The check for the memory root."""

    async def check() -> HealthResult:
        file = anyio.Path(memory / FILE)
        if await file.exists() and not await file.is_file():
            return _wrong(f"{file}: it is no regular file.")
        try:
            text = await file.read_text(encoding="utf-8") if await file.exists() else None
        except (OSError, ValueError) as error:
            return _wrong(f"{file}: {error}.")
        choices, problem = learning_and_problem(text, str(file))
        if problem:
            return _wrong(problem)
        return HealthResult("ok", f"Learning is {'on' if choices.on else 'off'}, as {FILE} says")

    return check


def _wrong(problem: str) -> HealthResult:
    return HealthResult(
        "warning", problem, "Mend it. Until then nothing is learned, and no model is told of it."
    )
