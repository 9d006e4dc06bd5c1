"""A block's ``block.toml``: reading, writing and changing its text. No I/O.

The file contains only the owner's settings, no counters of the program. Its first line records the creation
time.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, get_args, get_origin

import msgspec

from trunkline._util.toml import SettingsFileError, read_settings, read_toml
from trunkline.config.editor import apply_settings
from trunkline.config.problems import closest_matches
from trunkline.contracts.blocks.colour import check_colour
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.blocks.model_choice import check_models
from trunkline.contracts.memory.files import MemoryFile

_CREATED_COMMENT = re.compile(r"# Made on (\S+)\.")


class UnknownSettingError(ValueError):
    """A key or a value that a block cannot have. ``key`` names the key; the message describes the error."""

    def __init__(self, key: str, reason: str) -> None:
        self.key = key
        super().__init__(reason)


def _keys(kind: type[msgspec.Struct], above: str = "") -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(kind):
        key = f"{above}{field.encode_name}"
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from _keys(field.type, f"{key}.")
        else:
            yield key, field.type


KEYS: Mapping[str, Any] = dict(_keys(BlockConfig))
"""Every key that the file may have, with the type of its value. Keys within a table are dotted."""

TABLES = frozenset(key.partition(".")[0] for key in KEYS if "." in key)


def encode(config: BlockConfig, made: datetime) -> str:
    """Return the text of a new block's file. Settings at their default are left out."""
    import tomlkit

    values = {name: value for name, value in msgspec.to_builtins(config).items() if value is not None}
    return f"# Made on {made.astimezone(UTC).isoformat(timespec='seconds')}.\n" + tomlkit.dumps(values)


def decode(file: MemoryFile) -> BlockConfig:
    """Return the settings in a file. Raises SettingsFileError when they cannot be read."""
    return read_settings(file.path, file.content, BlockConfig)


def apply_changes(file: MemoryFile, changes: Mapping[str, Any]) -> str:
    """Return the text of the file with dotted keys set, or removed for the value None.

    Comments, order and all other keys stay.

    Raises:
      UnknownSettingError: a block cannot have this key or this value.
      SettingsFileError: the file cannot be read. It is not overwritten, so that a person can repair it.
    """
    from tomlkit.exceptions import TOMLKitError

    decode(file)
    current = _current_keys(file.content, changes)
    values = {key: _check_value(key, value) for key, value in current.items()}
    try:
        text = apply_settings(file.content, values)
    except TOMLKitError as error:
        raise SettingsFileError(f"{file.path}: {error}.") from error
    decode(msgspec.structs.replace(file, content=text))
    return text


def parse_value(key: str, words: Sequence[str]) -> Any:
    """Return the value of a key as typed on a command line.

    Several words are a list; one word may be a list in TOML. Text that does not fit the type is returned as
    it is, for ``apply_changes`` to refuse.
    """
    kind = _kind(key)
    if len(words) == 1 and words[0].startswith("["):
        try:
            return msgspec.convert(read_toml(f"v = {words[0]}")["v"], kind)
        except (ValueError, msgspec.ValidationError):
            pass  # plain text, or an error that apply_changes reports
    entries = [] if list(words) == [""] else list(words)
    for candidate in (entries, *words) if len(words) == 1 else (entries,):
        try:
            return msgspec.convert(candidate, kind, strict=False)
        except msgspec.ValidationError:
            continue
    return words[0] if len(words) == 1 else entries


def created_on(text: str) -> datetime | None:
    """Return the time when the block was created; None when the file does not contain it."""
    match = _CREATED_COMMENT.match(text)
    try:
        made = datetime.fromisoformat(match.group(1)) if match else None
    except ValueError:
        return None
    return made if made is None or made.tzinfo else made.replace(tzinfo=UTC)


def _kind(key: str) -> Any:
    """Return the type of a key's value; None if there is no such key. ``models.PURPOSE`` is a key for any purpose."""
    table, dot, purpose = key.partition(".")
    return str if table == "models" and dot and "." not in purpose and purpose else KEYS.get(key)


def _current_keys(text: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes by the keys of now, with those that move the file's former keys to their place."""
    present = read_toml(text)
    moved: dict[str, Any] = {}
    for former, place in BlockConfig.renamed.items():
        if former in present:
            moved |= {former: None, ".".join(place): _at(present, place) or present[former]}
    renamed = {former: ".".join(place) for former, place in BlockConfig.renamed.items()}
    return moved | {renamed.get(key, key): value for key, value in changes.items()}


def _at(table: Mapping[str, Any], place: tuple[str, str]) -> Any:
    return table.get(place[0], {}).get(place[1])


def _check_value(key: str, value: Any) -> Any:
    if value is None and (key in TABLES or key in BlockConfig.renamed):
        return None
    if (kind := _kind(key)) is None:
        last = key.rpartition(".")[2]
        candidate = [one for one in KEYS if one.rpartition(".")[2] == last] or closest_matches(key, KEYS)
        raise UnknownSettingError(key, f"No block has this key. {_or(candidate) or _or(sorted(KEYS))}")
    if value is None:
        return None
    if key.startswith("models."):
        _check_with(lambda: check_models({key.removeprefix("models."): value}), key)
    if key == "monitor_colour" and isinstance(value, str):
        _check_with(lambda: check_colour(value), key)
    try:
        return msgspec.to_builtins(msgspec.convert(value, kind))
    except msgspec.ValidationError as error:
        choices = [*_allowed_values(kind)]
        wrong = f"It is one of {', '.join(choices)}." if choices else f"{str(error).partition(' - at ')[0]}."
        raise UnknownSettingError(key, wrong) from error


def _check_with(check: Callable[[], None], key: str) -> None:
    try:
        check()
    except ValueError as error:
        raise UnknownSettingError(key, f"{error}") from error


def _or(names: Sequence[str]) -> str:
    if not names:
        return ""
    return f"Did you mean {' or '.join(names)}?" if len(names) < 3 else f"There are {', '.join(names)}."


def _allowed_values(kind: Any) -> Iterator[str]:
    """Yield the texts that a literal type allows."""
    if get_origin(kind) is Literal:
        yield from map(str, get_args(kind))
    else:
        for part in get_args(kind):
            yield from _allowed_values(part)
