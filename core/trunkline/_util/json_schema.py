"""Validation by JSON Schemas that somebody else wrote.

The validator fetches no reference from the network, and matches patterns in linear time, so that a hostile schema
neither reaches another host nor stops the process. jsonschema-rs is imported on first use.
"""

from typing import Any


def find_schema_violation(document: Any, schema: dict[str, Any]) -> str:
    """Return the place and the reason of the first violation, "" if the document is valid.

    A schema that cannot be applied counts as violated.
    """
    from jsonschema_rs import ReferencingError, RegexOptions, ValidationError, validator_for

    try:
        validator = validator_for(schema, offline=True, pattern_options=RegexOptions())
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

    try:
        validator_for(schema, offline=True, pattern_options=RegexOptions())
    except (ValidationError, ReferencingError, ValueError) as error:
        return _first_line(error)
    return ""


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
