"""Writes single settings into ``trunkline.toml`` and keeps comments and order. Used only by the command line."""

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trunkline._util.private_folders import make_private
from trunkline.config.secret import Secret
from trunkline.errors import ConfigError

_TABLE = re.compile(r"((?:^[ \t]*#.*\n)*)^[ \t]*\[\[?[^\[\]\n]+\]\]?[ \t]*(?:#.*)?$", re.MULTILINE)
"""The first line of a table, with the comment that stands right above it. A comment that begins the file is about the
file."""


def write_settings(file: Path, changes: Mapping[str, Any]) -> None:
    """Set dotted keys (``{"runtime.provider_adapter": "openai"}``) in the file, which is created if absent.

    A ``Secret`` is written as its reference. None removes the key. The file is replaced atomically. Validate the
    result with ``load_config``.

    Raises:
        ConfigError: the file is not TOML, cannot be written, or a key is below a value that is not a table.
    """
    from tomlkit.exceptions import TOMLKitError

    try:
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        replace_file(file, apply_settings(before, changes))
    except TOMLKitError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}.", hint="Correct that line first.") from error
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be written: {error.strerror}.", hint="Nothing was changed."
        ) from error


def apply_settings(text: str, changes: Mapping[str, Any]) -> str:
    """Return the text of a TOML file with dotted keys set, or removed for None. Comments and order are kept.

    Raises:
        TOMLKitError: the text is not TOML.
        ConfigError: a key is below a value that is not a table.
    """
    import tomlkit

    head, tail = _parted(text)
    top = tomlkit.parse(head)
    below = dict(changes)
    for name in [name for name in changes if "." not in name and (name in top or changes[name] is not None)]:
        _set(top, name, below.pop(name))
    document = tomlkit.parse(tomlkit.dumps(top) + tail)
    for dotted, value in below.items():
        _set(document, dotted, value)
    return tomlkit.dumps(document)


def _parted(text: str) -> tuple[str, str]:
    """Split the text before the first table and its comment, so that a new key is put above that comment. Return the
    whole text and an empty one when the position is unclear.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    header = _TABLE.search(text)
    if header is None:
        return text, ""
    at = header.start() or header.end(1)
    head, tail = text[:at], text[at:]
    try:
        tomlkit.parse(head)
    except TOMLKitError:  # what looks like a table header is part of a value
        return text, ""
    return head, tail


def _set(document: Any, dotted: str, value: Any) -> None:
    import tomlkit

    *tables, name = dotted.split(".")
    node = document
    for depth, table in enumerate(tables):
        if table not in node:
            node[table] = tomlkit.table(is_super_table=depth < len(tables) - 1)
        node = node[table]
        if not hasattr(node, "keys"):
            raise ConfigError(f"{dotted} cannot be set: {table} is not a table.")
    if value is None:
        node.pop(name, None)
    else:
        node[name] = _written(value)


def _written(value: Any) -> Any:
    import tomlkit

    if isinstance(value, Secret):
        reference = tomlkit.inline_table()
        reference["env"] = value.env
        return reference
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def replace_file(file: Path, text: str) -> None:
    """Write the file atomically, readable by the owner only. Raises OSError."""
    make_private(file.parent)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as target:
            target.write(text)
            target.flush()
            os.fsync(target.fileno())
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
