"""What the rules of plugins leave of a planned change: they may alter it or refuse it before it is kept."""

import logging
from collections.abc import Mapping, Sequence

from trunkline.contracts.memory.store import Change, MemoryRule
from trunkline.workers.memory.block_rule import missing_blocks
from trunkline.workers.memory.operations import ChangePlan, WriteOperation
from trunkline.workers.memory.paths import normalize_path
from trunkline.workers.memory.repository import BlobEntry
from trunkline.workers.memory.view import View
from trunkline_bus import Refusal

_log = logging.getLogger(__name__)


def apply_rules(
    rules: Sequence[MemoryRule],
    wish: WriteOperation,
    plan: ChangePlan,
    files: Mapping[str, bytes | None],
    view: View,
) -> Change:
    """The change after all rules have seen it; ``files`` are the plan's, as bytes, and ``view`` is what it was planned
    against. Raises Refusal when a rule refuses or fails, or wants a path that is not allowed."""
    change = Change(
        dict(files),
        actor=wish.actor,
        reason=wish.reason or plan.reason,
        scope=wish.scope,
        known=_unchanged_bytes(plan, files),
        homeless=missing_blocks(files, view),
    )
    for rule in rules if files else ():
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


def _unchanged_bytes(plan: ChangePlan, files: Mapping[str, bytes | None]) -> dict[str, int]:
    """How many bytes at the beginning of each file are in memory already: it only grows, or is moved."""
    known = {path: growth.size for path, growth in plan.growth.items()}
    moved = (path for path, content in plan.files.items() if isinstance(content, BlobEntry))
    return known | {path: len(files[path] or b"") for path in moved}
