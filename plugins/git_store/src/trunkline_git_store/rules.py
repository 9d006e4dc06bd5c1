"""Applies the plugins' memory rules to a planned change: they may alter or refuse it before it is
committed."""

from collections.abc import Mapping, Sequence

from trunkline.api.store import Change, MemoryRule, apply_rules, missing_blocks
from trunkline_git_store.operations import ChangePlan, WriteOperation
from trunkline_git_store.repository import BlobEntry
from trunkline_git_store.view import View


def change_after_rules(
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
        homeless=missing_blocks(files, lambda path: view.entry(path) is not None),
    )
    return apply_rules(rules, change)


def _unchanged_bytes(plan: ChangePlan, files: Mapping[str, bytes | None]) -> dict[str, int]:
    """Return the number of bytes at the beginning of each file that memory already has: the file only grows,
    or is moved."""
    known = {path: growth.size for path, growth in plan.growth.items()}
    moved = (path for path, content in plan.files.items() if isinstance(content, BlobEntry))
    return known | {path: len(files[path] or b"") for path in moved}
