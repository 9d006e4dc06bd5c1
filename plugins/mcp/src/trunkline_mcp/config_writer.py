"""Changing the files that name servers: whole or not at all, readable by the owner only, other keys left alone."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

import trunkline
from trunkline_mcp.server_config import BLOCK, FILE, FOLDER, BadEntry, read_entries, server_of, where_to_look

KEY = "mcpServers"


def file_of(home: Path, block: str) -> Path:
    """The file for a block's servers, or for everybody's. Raises TrunklineError for what is no block's name."""
    if block and BLOCK.fullmatch(block) is None:
        raise trunkline.TrunklineError(f"{block!r} is not the name of a block.")
    return home / FOLDER / f"{block}.json" if block else home / FILE


def put(home: Path, block: str, name: str, entry: Mapping[str, Any], *, replace: bool) -> None:
    """Write an entry.

    Raises:
        TrunklineError: it is no entry, the file is broken, or the name is there and may not be replaced.
    """
    file = file_of(home, block)
    entries = _entries(file)
    try:
        server_of(name, dict(entry), block)
    except BadEntry as error:
        raise trunkline.TrunklineError(f"{name}: {error}.") from error
    if name in entries and not replace:
        raise trunkline.TrunklineError(
            f"There is a server {name} already in {file}.", hint="Say --replace to write over it."
        )
    _write(file, {**entries, name: dict(entry)})


def take_out(home: Path, block: str, name: str) -> None:
    """Take an entry out. Raises TrunklineError when there is none, or the file is broken."""
    file = file_of(home, block)
    entries = _entries(file)
    if name not in entries:
        raise trunkline.TrunklineError(
            f"There is no server {name} in {file}.",
            hint=where_to_look(home, f"{block}/{name}" if block else name),
        )
    _write(file, {key: value for key, value in entries.items() if key != name})


def _entries(file: Path) -> dict[str, Any]:
    try:
        return read_entries(file)
    except BadEntry as error:
        raise trunkline.TrunklineError(f"{file}: {error}.", hint="Mend the file first.") from error


def _write(file: Path, entries: Mapping[str, Any]) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    whole = {**_whole(file), KEY: entries}
    draft = file.with_suffix(".draft")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
        opened.write(msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n")
    draft.replace(file)


def _whole(file: Path) -> dict[str, Any]:
    try:
        return dict(msgspec.json.decode(file.read_bytes()))
    except FileNotFoundError:
        return {}
