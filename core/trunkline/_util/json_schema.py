"""Validation by JSON Schemas that somebody else wrote.

The validator fetches no reference from the network, and matches patterns in linear time, so that a hostile schema
neither reaches another host nor stops the process. A few references can describe more work than can ever be done, so a
schema with references is applied in a process of its own, which is ended after a while. jsonschema-rs is imported on
first use.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

MAX_PATTERNS = 100
"""The largest number of regular expressions in a schema."""

PATTERN_BYTES = 1_000_000
"""The largest size of a compiled regular expression."""

MAX_SECONDS = 10.0
"""Seconds that the validation by a schema with references may take."""

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def find_schema_violation(document: Any, schema: dict[str, Any]) -> str:
    """Return the place and the reason of the first violation, "" if the document is valid.

    A schema that cannot be applied, or not within ``MAX_SECONDS``, counts as violated. The caller waits that long.
    """
    if not any(key in REFERENCES for key, _ in _members(schema)):
        return apply_schema(document, schema)
    command = [sys.executable, "-I", "-m", __name__]
    given = json.dumps([document, schema]).encode()
    try:
        found = subprocess.run(command, input=given, capture_output=True, timeout=MAX_SECONDS, check=True)
    except (subprocess.SubprocessError, RecursionError):
        return "The schema cannot be applied: that would take too long."
    return found.stdout.decode()


def apply_schema(document: Any, schema: dict[str, Any]) -> str:
    """Do the same as ``find_schema_violation``, however long that takes."""
    from jsonschema_rs import ReferencingError, RegexOptions, ValidationError, validator_for

    try:
        validator = validator_for(
            schema, offline=True, pattern_options=RegexOptions(size_limit=PATTERN_BYTES)
        )
        found = next(iter(validator.iter_errors(document)), None)
    except (ValidationError, ReferencingError, ValueError) as error:
        return f"The schema cannot be applied: {_first_line(error)}"
    if found is None:
        return ""
    place = "".join(f"[{part!r}]" for part in found.instance_path)
    return f"At ${place}: {found.message}"


def find_schema_problem(schema: dict[str, Any]) -> str:
    """Return why a value is no JSON Schema that can be applied, "" if it is one."""
    from jsonschema_rs import ReferencingError, RegexOptions, ValidationError, validator_for

    if _count_patterns(schema) > MAX_PATTERNS:
        return f"It has more than {MAX_PATTERNS} regular expressions."
    try:
        validator_for(schema, offline=True, pattern_options=RegexOptions(size_limit=PATTERN_BYTES))
    except (ValidationError, ReferencingError, ValueError) as error:
        return _first_line(error)
    return ""


def _count_patterns(schema: dict[str, Any]) -> int:
    found = (value for key, value in _members(schema) if key in ("pattern", "patternProperties"))
    return sum(len(value) if isinstance(value, dict) else 1 for value in found)


def _members(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keys of all objects of a schema, with their values. A schema may be nested to any depth."""
    waiting: list[Any] = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield from value.items()
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


if __name__ == "__main__":
    sys.stdout.buffer.write(apply_schema(*json.load(sys.stdin)).encode(errors="replace"))
