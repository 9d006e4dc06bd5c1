"""Records of background tasks, as their supervisor writes them."""

from datetime import UTC, datetime
from pathlib import Path

from trunkline.contracts.sandbox.detached_program import DetachedProgram, ProgramSpec, programs_folder


def begin_task(home: Path, block: str, name: str, *command: str) -> tuple[DetachedProgram, int]:
    """A task as its supervisor records it; it runs until the file descriptor is closed."""
    program = DetachedProgram(programs_folder(home, block) / name)
    order = ProgramSpec(
        home=str(home), backend="bubblewrap", argv=command, workspace="w", env={"SECRET": "not shown"}, folder="",
        label="", seconds=60, memory=16, cpus=1, processes=1, network=False, writable=False, at=datetime.now(UTC),
    )  # fmt: skip
    return program, program.create(order)
