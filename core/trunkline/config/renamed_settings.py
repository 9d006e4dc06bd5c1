"""Renamed settings: one table of former names with their current names. A later renaming adds a row.

The migration of a home to home version ``RENAMED_IN`` rewrites its ``trunkline.toml``. Until then, the file is read
as if it were already rewritten. After the migration, and in environment variables at any time, a former name is
refused with an error that states the current name.
"""

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from trunkline.config.editor import apply_settings
from trunkline.config.origins import KEY_VALUE, TABLE_HEADER, Key, split_key

RENAMED_IN = 2
"""The home version (``home_format.py``) from which ``trunkline.toml`` has the new names."""

RENAMED_SETTINGS: Mapping[str, str] = {
    "bus.prepare": "manage_streams",
    "bus.wait": "connect_timeout",
    "bus.sync": "sync_interval",
    "bus.feed": "feed_storage",
    "gateway.hosts": "allowed_hosts",
    "gateway.head_timeout": "header_timeout",
    "approvals.background": "background_deadline",
    "approvals.channels": "channel_deadlines",
    "approvals.remind": "remind_after_share",
    "monitor.window": "context_window",
    "monitor.model_silence": "model_idle_timeout",
    "monitor.tool_silence": "tool_idle_timeout",
    "monitor.coalesce": "text_flush_seconds",
    "monitor.discovery_above": "discovery_threshold",
    "monitor.drain": "drain_timeout",
    "models.windows": "context_windows",
    "tools.hold": "answer_wait",
    "tools.shown_result": "max_shown_result",
    "tools.largest_result": "max_stored_result",
    "tools.drain": "drain_timeout",
    "memory.group_window": "commit_window",
    "memory.sync": "fsync",
    "documents.seconds": "read_timeout",
    "documents.memory": "read_memory_mb",
    "remotes.patience": "unreachable_timeout",
    "retention.dead_days": "dead_letter_days",
    "retention.dead_mb": "dead_letter_mb",
    "plugins.import_seconds": "import_timeout",
    "plugins.stall": "stall_timeout",
    "plugins.crashes": "max_crashes",
    "plugins.sandbox.workspace": "workspace_mb",
    "plugins.sandbox.system": "readable_paths",
    "plugins.sandbox.warm": "warm_containers",
    "plugins.shell.memory": "memory_mb",
    "plugins.shell.tasks": "max_tasks",
    "plugins.shell.task_seconds": "task_timeout",
    "plugins.git.memory": "memory_mb",
    "plugins.git.protected": "protected_branches",
    "plugins.rlm.iterations": "max_iterations",
    "plugins.rlm.depth": "max_depth",
    "adapters.engine.timeout_connect": "connect_timeout",
    "adapters.openai.timeout_connect": "connect_timeout",
    "adapters.openai.continues": "continue_final_message",
}
"""The old dotted key of each setting, and the new last part of it."""


def new_key(key: Key) -> Key | None:
    """Return the current key of a renamed setting; None when ``key`` is no former key."""
    name = RENAMED_SETTINGS.get(".".join(key))
    return (*key[:-1], name) if name else None


def rename_settings(text: str) -> str:
    """Return the text of a settings file with the current keys. Comments and order are kept.

    A former key is kept if the current key is also present, so that loading refuses the file: it is unknown which of
    the two values is meant.

    Raises:
        tomllib.TOMLDecodeError: the text is not TOML.
    """
    before = tomllib.loads(text)
    changes: dict[str, Any] = {}
    for old in RENAMED_SETTINGS:
        key = split_key(old)
        renamed = new_key(key)
        value = _value(before, key)
        if renamed and value is not None and _value(before, renamed) is None:
            changes |= {".".join(renamed): value, old: None}
    if not changes:
        return text
    after = apply_settings(text, changes)
    edited = _edited(text, changes)
    return edited if edited is not None and tomllib.loads(edited) == tomllib.loads(after) else after


def _edited(text: str, changes: Mapping[str, Any]) -> str | None:
    """Return the text with each key renamed in place; None when the result is not TOML.

    A line of a multi-line text may look like a key, so the caller compares the values. Keys in an inline table are
    not found by lines; the editor moves them to the table's end.
    """
    edited = "".join(_Renamer({key for key, value in changes.items() if value is None}).lines(text))
    try:
        now = tomllib.loads(edited)
    except tomllib.TOMLDecodeError:
        return None
    left = {
        key for key, value in changes.items() if value is None and _value(now, split_key(key)) is not None
    }
    moved = {".".join(new_key(split_key(key)) or ()) for key in left}
    return apply_settings(edited, {key: value for key, value in changes.items() if key in left | moved})


class _Renamer:
    """Renames keys line by line, in table headers and before the equals sign."""

    def __init__(self, old: set[str]) -> None:
        self._old = old
        self._table: Key = ()

    def lines(self, text: str) -> list[str]:
        """Return the lines with their new keys."""
        return [self._line(line) for line in text.splitlines(keepends=True)]

    def _line(self, line: str) -> str:
        if header := TABLE_HEADER.match(line):
            self._table = split_key(header.group(1))
            return self._renamed(line, header, ())
        entry = KEY_VALUE.match(line)
        return self._renamed(line, entry, self._table) if entry else line

    def _renamed(self, line: str, match: re.Match[str], table: Key) -> str:
        parts = match.group(1).split(".")
        for number in range(len(parts)):
            key = (*table, *split_key(".".join(parts[: number + 1])))
            if ".".join(key) in self._old:
                parts[number] = parts[number].replace(key[-1], RENAMED_SETTINGS[".".join(key)])
                break
        return line[: match.start(1)] + ".".join(parts) + line[match.end(1) :]


def _value(table: Any, key: Key) -> Any:
    for name in key:
        table = table.get(name) if isinstance(table, dict) else None
    return table
