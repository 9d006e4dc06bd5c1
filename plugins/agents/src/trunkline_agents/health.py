"""The health check of types: reports each file that cannot be used."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio.to_thread

from trunkline import HealthResult
from trunkline.api.memory import block_folder
from trunkline_agents.agent_type import AgentTypeIssue, parse_agent_type

LOCATIONS = ("agent-types/*.md", f"{block_folder('*')}/agent-types/*.md")
"""The files of types in memory."""


def agent_type_check(memory: Path) -> Callable[[], Awaitable[HealthResult]]:
    """The check for the memory root."""

    async def check() -> HealthResult:
        return await anyio.to_thread.run_sync(_issues, memory)

    return check


def _issues(memory: Path) -> HealthResult:
    files = [file for place in LOCATIONS for file in sorted(memory.glob(place))]
    wrong = [issue.line.removeprefix("- ") for file in files if (issue := _issue(memory, file)) is not None]
    if wrong:
        return HealthResult(
            "warning", f"Types of agents that cannot be used: {' '.join(wrong)}", "Correct the files."
        )
    return HealthResult("ok", f"All types of agents can be used ({len(files)})")


def _issue(memory: Path, file: Path) -> AgentTypeIssue | None:
    path = str(file.relative_to(memory))
    if file.is_symlink() or not file.is_file():
        return AgentTypeIssue(file.stem, path, "it cannot be read: it is not a regular file.")
    try:
        parsed = parse_agent_type(file.stem, path, file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        return AgentTypeIssue(file.stem, path, f"it cannot be read: {error}")
    return parsed if isinstance(parsed, AgentTypeIssue) else None
