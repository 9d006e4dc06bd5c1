"""JSON that a person may have written: policies, manifests of tools, entries of servers. Pure."""

import re
from typing import TypeVar

import msgspec

from trunkline._util.toml import SettingsFileError, key_in_message

T = TypeVar("T")

NEW_LINE = b"\n"


def read_json(path: str, data: bytes, kind: type[T]) -> T:
    """What a file holds.

    Raises:
        BadSettings: it is no JSON, or does not fit. The text names file and line, as with TOML.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        said = str(error) or "it is nested too deeply"
        raise SettingsFileError(f"{path}{_line(data, said)}: {said.rstrip('.')}.") from error


def _line(data: bytes, said: str) -> str:
    """Where it is, as ``, line 3``; "" where that is not found."""
    if (byte := re.search(r"\(byte (\d+)\)|position (\d+)", said)) is not None:
        return f", line {data[: int(byte[1] or byte[2])].count(NEW_LINE) + 1}"
    if "truncated" in said:
        return f", line {data.rstrip().count(NEW_LINE) + 1}"
    return line_of(data, key_in_message(said))


def line_of(data: bytes, name: str) -> str:
    """Where a key stands, as ``, line 3``, or the file begins for none; "" where that is not found."""
    key = re.escape(name).encode()
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not key or re.search(rb'"%s"\s*:' % key, line):
            return f", line {number}"
    return ""
