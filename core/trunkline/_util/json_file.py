"""JSON files that a person may have written: policies, tool manifests, server entries. Pure functions."""

import re
from typing import TypeVar

import msgspec

from trunkline._util.toml import SettingsFileError, key_in_message

T = TypeVar("T")

NEW_LINE = b"\n"


def read_json(path: str, data: bytes, kind: type[T]) -> T:
    """Return the content of a file as ``kind``.

    Raises:
        SettingsFileError: the content is not JSON, or does not match the type. The text names file and line, as for
            TOML.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        said = str(error) or "it is nested too deeply"
        raise SettingsFileError(f"{path}{_line(data, said)}: {said.rstrip('.')}.") from error


def _line(data: bytes, message: str) -> str:
    """Return the position as ``, line 3``; "" when it is not found."""
    if (byte := re.search(r"\(byte (\d+)\)|position (\d+)", message)) is not None:
        return f", line {data[: int(byte[1] or byte[2])].count(NEW_LINE) + 1}"
    if "truncated" in message:
        return f", line {data.rstrip().count(NEW_LINE) + 1}"
    return line_of(data, key_in_message(message))


def line_of(data: bytes, name: str) -> str:
    """Return the line of a key as ``, line 3``, or the first line for an empty name; "" when it is not
    found."""
    key = re.escape(name).encode()
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not key or re.search(rb'"%s"\s*:' % key, line):
            return f", line {number}"
    return ""
