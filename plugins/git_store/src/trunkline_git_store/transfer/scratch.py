"""The temporary files of exports and imports in the cache, and their removal after a kill."""

import shutil
from pathlib import Path

SCRATCH_PATTERNS = (
    ".import-*",
    ".export-*",
    ".index-*",
    "import-*.tar",
    "memory-*.tar",
    ".memory-*.tar.part",
)


def remove_scratch_files(cache: Path) -> None:
    """Remove what a killed process left. Only for who holds the memory root."""
    for pattern in SCRATCH_PATTERNS:
        for left in cache.glob(pattern):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
