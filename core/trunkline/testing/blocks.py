"""The block that tests work in. A gateway makes it; where none runs, it is made here, since nothing is written into a
block that is not there."""

from collections.abc import Collection
from pathlib import Path

from trunkline._util.private_folders import make_private
from trunkline.contracts.blocks.paths import block_file_path

BLOCK = "main"


def make_block(memory: Path, workers: Collection[str], block: str = BLOCK) -> None:
    """Make a block in the folder of a memory that has none of this name, unless a gateway is among the workers."""
    file = memory / block_file_path(block)
    if "memory" in workers and "gateway" not in workers and not file.exists():
        make_private(file.parent)
        file.touch()
