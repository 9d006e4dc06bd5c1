"""Applies the memory rules to a change. Every store does this before each commit, so that no change bypasses a rule."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from trunkline.contracts.blocks.paths import BLOCKS_FOLDER, block_file_path
from trunkline.contracts.memory.path_rules import normalize_path
from trunkline.contracts.memory.store import Change, MemoryRule
from trunkline_bus import Refusal

_log = logging.getLogger(__name__)


def apply_rules(rules: Sequence[MemoryRule], change: Change) -> Change:
    """Return the change after all rules, in their order.

    Raises Refusal if a rule refuses or fails, or names a path that is not allowed. Then nothing may be written.
    """
    for rule in rules if change.files else ():
        change = _apply_rule(rule, change)
    return change


def _apply_rule(rule: MemoryRule, change: Change) -> Change:
    try:
        left = rule(change)
        left.files = {normalize_path(path): content for path, content in left.files.items()}
        return left
    except Refusal:
        raise
    except Exception as error:
        _log.exception("a memory rule failed; the change is refused")
        raise Refusal("write_failure", "Nothing was written: a rule of the memory failed.") from error


def missing_blocks(files: Mapping[str, object | None], exists: Callable[[str], bool]) -> frozenset[str]:
    """Return the blocks that a change writes into and that do not exist after the change.

    A store passes them as ``Change.missing_blocks``. ``exists`` reports whether memory has a file at a path.
    """
    return frozenset(
        home.split("/")[1]
        for home in block_files(files)
        if (files[home] is None if home in files else not exists(home))
    )


def block_files(files: Mapping[str, object | None]) -> Iterator[str]:
    """Yield the ``block.toml`` of each block that ``files`` are written into. A file with the content None is
    deleted.
    """
    written = (path.split("/") for path, content in files.items() if content is not None)
    yield from {
        block_file_path(parts[1]) for parts in written if parts[0] == BLOCKS_FOLDER and len(parts) > 2
    }
