"""The JSON schema of workflows, for editors. It is made from the table of fields that the reader uses."""

from typing import Any

from trunkline_workflow.definition import FIELDS, FILE_FIELDS, MAX_STEPS, NAME, TARGETS, TOOL_NAME, StepType

STEP_ID = "^[A-Za-z_][A-Za-z0-9_-]{0,31}$"

_TARGET = {"type": "string", "pattern": STEP_ID, "description": "The id of the step that follows."}

_VALUES: dict[str, dict[str, Any]] = {
    "id": {"type": "string", "pattern": STEP_ID, "description": "The step's id, once in the file."},
    "name": {"type": "string", "description": "A name for people."},
    "args": {"type": "object", "description": "The arguments of the tool. {{ name }} is a value of the run."},
    "message": {"type": "string", "description": "What the person decides about."},
    "retry": {
        "type": "object",
        "required": ["times"],
        "additionalProperties": False,
        "properties": {
            "times": {"type": "integer", "minimum": 1, "maximum": 20},
            "backoff": {"type": "number", "minimum": 0, "maximum": 3600},
        },
        "description": "Repetitions of a failed action. The pause of backoff seconds doubles each time.",
    },
    "timeout": {"type": "number", "minimum": 1, "maximum": 86400, "description": "Seconds for one call."},
    "max_visits": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "The bound of a cycle."},
    **dict.fromkeys(TARGETS, _TARGET),
}


def json_schema() -> dict[str, Any]:
    """Return the schema. Every file that the reader accepts fits it; the reader also checks ids, targets and cycles."""
    file: dict[str, dict[str, Any]] = {
        "name": {"type": "string", "pattern": f"^{NAME.pattern}$"},
        "description": {"type": "string", "minLength": 1},
        "inputs": {"type": "object", "description": "The inputs and their defaults; null means required."},
        "steps": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_STEPS,
            "items": {"oneOf": [_step(kind) for kind in FIELDS]},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Trunkline workflow",
        "type": "object",
        "required": ["name", "description", "steps"],
        "additionalProperties": False,
        "properties": {key: file[key] for key in FILE_FIELDS},
    }


def _step(kind: StepType) -> dict[str, Any]:
    action: dict[str, Any] = {
        "type": "string",
        "description": "The name that decides, such as steps.test.passed.",
    }
    if kind == "action":
        action = {"type": "string", "pattern": f"^{TOOL_NAME.pattern}$", "description": "A tool, or wait."}
    values = {**_VALUES, "type": {"const": kind}, "action": action}
    return {
        "type": "object",
        "required": ["id", "type", *(["action"] if "action" in FIELDS[kind] else [])],
        "additionalProperties": False,
        "properties": {key: values[key] for key in ("id", "name", "type", *FIELDS[kind])},
    }
