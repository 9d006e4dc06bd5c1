"""Changing the files that name servers: whole or not at all, readable by the owner only, other keys left alone."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

import trunkline
from trunkline.api.memory import is_block_name
from trunkline_mcp.server_config import (
    CONFIG_FILE,
    CONFIG_FOLDER,
    InvalidEntryError,
    ServerConfig,
    parse_server,
    read_entries,
    unknown_server_hint,
)

SERVERS_KEY = "mcpServers"


class ServerExistsError(trunkline.TrunklineError):
    """There is a server of this name already."""


class NoServerError(trunkline.TrunklineError):
    """There is no server of this name in the file."""


def config_path(home: Path, block: str) -> Path:
    """The file for a block's servers, or for everybody's. Raises TrunklineError for what is no block's name."""
    if block and not is_block_name(block):
        raise trunkline.TrunklineError(f"{block!r} is not the name of a block.")
    return home / CONFIG_FOLDER / f"{block}.json" if block else home / CONFIG_FILE


def put_server(home: Path, block: str, name: str, entry: Mapping[str, Any], *, replace: bool) -> None:
    """Write an entry.

    Raises:
        TrunklineError: it is no entry, or the file is broken.
        ServerExistsError: the name is there and may not be replaced.
    """
    file = config_path(home, block)
    entries = _read_entries(file)
    _check_entry(block, name, dict(entry))
    if name in entries and not replace:
        raise ServerExistsError(
            f"There is a server {name} already in {file}.", hint="Use --replace to overwrite it."
        )
    _write_entries(file, {**entries, name: dict(entry)})


def change_server(home: Path, block: str, name: str, patch: Mapping[str, Any]) -> None:
    """Change an entry by a JSON merge patch (RFC 7396).

    Raises:
        TrunklineError: the result is no entry, or the file is broken.
        NoServerError: there is no such server.
    """
    file = config_path(home, block)
    entries = _read_entries(file)
    _require(home, file, entries, block, name)
    entry = _patched(entries[name], patch)
    _check_entry(block, name, entry)
    _write_entries(file, {**entries, name: entry})


def remove_server(home: Path, block: str, name: str) -> None:
    """Take an entry out.

    Raises:
        TrunklineError: the file is broken.
        NoServerError: there is no such server.
    """
    file = config_path(home, block)
    entries = _read_entries(file)
    _require(home, file, entries, block, name)
    _write_entries(file, {key: value for key, value in entries.items() if key != name})


def forget_server(home: Path, server: str) -> None:
    """Remove a server by its identity, and what was kept of its sign-in. Raises as ``remove_server`` does."""
    from trunkline_mcp.connector import TOKENS_FOLDER
    from trunkline_mcp.oauth import OAuthTokenStore

    block, _, name = server.rpartition("/")
    remove_server(home, block, name)
    OAuthTokenStore(home / CONFIG_FOLDER / TOKENS_FOLDER, ServerConfig(name, block)).forget()


def _require(home: Path, file: Path, entries: Mapping[str, Any], block: str, name: str) -> None:
    if name not in entries:
        raise NoServerError(
            f"There is no server {name} in {file}.",
            hint=unknown_server_hint(home, f"{block}/{name}" if block else name),
        )


def _check_entry(block: str, name: str, entry: Any) -> None:
    try:
        parse_server(name, entry, block)
    except InvalidEntryError as error:
        raise trunkline.TrunklineError(f"{name}: {error}.") from error


def _patched(value: Any, patch: Any) -> Any:
    """Return a JSON value after a merge patch."""
    if not isinstance(patch, Mapping):
        return patch
    kept = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            kept.pop(key, None)
        else:
            kept[key] = _patched(kept.get(key), change)
    return kept


def _read_entries(file: Path) -> dict[str, Any]:
    try:
        return read_entries(file)
    except InvalidEntryError as error:
        raise trunkline.TrunklineError(f"{file}: {error}.", hint="Correct the file first.") from error


def _write_entries(file: Path, entries: Mapping[str, Any]) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    whole = {**_read_file(file), SERVERS_KEY: entries}
    draft = file.with_suffix(".draft")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
        opened.write(msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n")
    draft.replace(file)


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return dict(msgspec.json.decode(file.read_bytes()))
    except FileNotFoundError:
        return {}
