"""The definition of a workflow, read from YAML and checked. Pure; the [reference](../../README.md) has the grammar."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from trunkline_workflow.templates import STEPS, Path, TemplateError, parse_path, parse_template, templates_in
from trunkline_workflow.yaml_reader import Problem, YamlError, YamlNode, read_yaml

StepType = Literal["action", "approval", "conditional"]

WAIT = "wait"
"""The action that waits; every other action is the name of a tool."""

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
MAX_STEPS = 200

FILE_FIELDS = ("name", "description", "inputs", "steps")
TARGETS = ("next", "on_approve", "on_reject", "on_error")
FIELDS: dict[StepType, tuple[str, ...]] = {
    "action": ("action", "args", "next", "on_error", "retry", "timeout", "max_visits"),
    "approval": ("message", "on_approve", "on_reject", "max_visits"),
    "conditional": ("action", "on_approve", "on_reject", "max_visits"),
}
"""The fields of a step of each type, besides ``id``, ``name`` and ``type``."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The number of repetitions of a failed action, and the seconds before the first one, which double each time."""

    times: int = 0
    backoff: float = 1.0


@dataclass(frozen=True, slots=True)
class WorkflowStep:
    """A step. A target that is None ends the run. ``timeout`` is in seconds, None for the tool's own. ``lines`` are the
    lines of the fields.
    """

    id: str
    name: str
    type: StepType
    line: int
    action: str = ""
    condition: Path = ()
    args: dict[str, Any] = field(default_factory=dict)
    message: Any = ""
    next: str | None = None
    on_approve: str | None = None
    on_reject: str | None = None
    on_error: str | None = None
    retry: Retry = Retry()
    timeout: float | None = None
    max_visits: int | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        """The targets that are set, each with its field."""
        named = ((key, getattr(self, key)) for key in TARGETS)
        return tuple((key, target) for key, target in named if target is not None)


@dataclass(frozen=True, slots=True)
class Definition:
    """A checked workflow. ``text`` is the file, ``steps`` are in its order; the first one begins. ``inputs`` are the
    values that a run begins with, None for one that must be given.
    """

    name: str
    description: str
    steps: tuple[WorkflowStep, ...]
    text: str
    inputs: dict[str, Any] = field(default_factory=dict)

    def step(self, id: str) -> WorkflowStep:
        """Return the step with an id that exists."""
        return next(step for step in self.steps if step.id == id)

    @property
    def sha256(self) -> str:
        """The hash of the text."""
        return text_hash(self.text)


class DefinitionError(ValueError):
    """A text is no workflow. ``problems`` are all mistakes that were found, by line."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        super().__init__("; ".join(map(str, self.problems)))


def text_hash(text: str) -> str:
    """Return the hash of a definition's text, as runs record it."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def parse_definition(text: str) -> Definition:
    """Return the workflow that a text defines. Raises DefinitionError with every mistake and its line."""
    from trunkline_workflow.graph import graph_problems

    try:
        root = read_yaml(text)
    except YamlError as error:
        raise DefinitionError([error.problem]) from error
    reader = _Reader()
    definition = reader.definition(root, text)
    problems = list(reader.problems)
    if not reader.is_incomplete:
        problems += [*graph_problems(definition), *_template_problems(definition)]
    if problems:
        raise DefinitionError(problems)
    return definition


class _Reader:
    """Reads fields and collects mistakes, so that a person sees all of them at once."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.is_incomplete = False
        """True if a step could not be read, so that a target may name it."""

    def definition(self, root: YamlNode, text: str) -> Definition:
        fields = self._mapping(root, "The file", FILE_FIELDS)
        name = self._text(root, fields, "name")
        if name and not NAME.fullmatch(name):
            self._add(
                fields["name"].line, f"The name {name!r} must have lower-case letters, digits, - and _."
            )
        description = self._text(root, fields, "description")
        inputs = self._inputs(fields.get("inputs"))
        node = fields.get("steps")
        steps: list[WorkflowStep] = []
        if node is None or not isinstance(node.value, list) or not node.value:
            self._add(
                node.line if node else root.line, "The field steps must be a list with at least one step."
            )
        elif len(node.value) > MAX_STEPS:
            self._add(node.line, f"A workflow has {MAX_STEPS} steps at most.")
        else:
            steps = [step for one in node.value if (step := self._step(one)) is not None]
            self.is_incomplete = len(steps) < len(node.value)
        self._unique(steps)
        return Definition(name, description, tuple(steps), text, inputs)

    def _inputs(self, node: YamlNode | None) -> dict[str, Any]:
        if node is None:
            return {}
        if not isinstance(node.value, dict):
            self._add(
                node.line, "The field inputs must be a mapping of names to values; null means required."
            )
            return {}
        for name, line in node.keys.items():
            if not re.fullmatch(r"[A-Za-z_][\w-]{0,63}", name, re.ASCII) or name in (STEPS, "error"):
                self._add(line, f"{name!r} cannot be the name of an input.")
        value: dict[str, Any] = node.plain()
        return value

    def _step(self, node: YamlNode) -> WorkflowStep | None:
        if not isinstance(node.value, dict):
            self._add(node.line, "A step must be a mapping with id, name and type.")
            return None
        kind = node.value["type"].value if "type" in node.value else None
        if not isinstance(kind, str) or kind not in FIELDS:
            line = node.value["type"].line if "type" in node.value else node.line
            self._add(line, f"The type must be action, approval or conditional, and not {kind!r}.")
            return None
        fields = self._mapping(node, f"A step of the type {kind}", ("id", "name", "type", *FIELDS[kind]))
        id = self._text(node, fields, "id")
        if not re.fullmatch(r"[A-Za-z_][\w-]{0,31}", id, re.ASCII):
            self._add(
                node.line,
                f"The id {id!r} must begin with a letter and have letters, digits, - and _, 32 at most.",
            )
        targets = {key: self._text(node, fields, key, required=False) or None for key in TARGETS}
        lines = {key: one.line for key, one in fields.items()}
        work: dict[str, Any] = {**targets, **self._work(kind, node, fields), "lines": lines}
        name = self._text(node, fields, "name", required=False) or id
        return WorkflowStep(id=id, name=name, type=kind, line=node.line, **work)

    def _work(self, kind: StepType, node: YamlNode, fields: dict[str, YamlNode]) -> dict[str, Any]:
        """Return what a step of this type does."""
        found: dict[str, Any] = {"max_visits": self._number(fields, "max_visits", 1, 1000)}
        if kind == "approval":
            return {**found, "message": self._template(fields.get("message"), "")}
        action = self._text(node, fields, "action")
        if kind == "conditional":
            return {**found, "condition": self._path(fields["action"].line, action) if action else ()}
        if action and not TOOL_NAME.fullmatch(action):
            self._add(fields["action"].line, f"{action!r} cannot be the name of a tool.")
        arguments = fields.get("args")
        if arguments is not None and arguments.value is None:
            arguments = None
        if arguments is not None and not isinstance(arguments.value, dict):
            self._add(arguments.line, "The field args must be a mapping.")
            arguments = None
        args = self._template(arguments, {})
        if action == WAIT:
            self._check_wait(node, args)
        return {
            **found,
            "action": action,
            "args": args,
            "retry": self._retry(fields.get("retry")),
            "timeout": self._number(fields, "timeout", 1, 86_400),
        }

    def _check_wait(self, node: YamlNode, args: dict[str, Any]) -> None:
        seconds = args.get("seconds")
        if set(args) != {"seconds"} or (isinstance(seconds, str | bool | list | dict) or seconds is None):
            self._add(node.line, "The action wait takes the argument seconds, a number, and no other.")

    def _retry(self, node: YamlNode | None) -> Retry:
        if node is None:
            return Retry()
        fields = self._mapping(node, "The field retry", ("times", "backoff"))
        times, backoff = self._number(fields, "times", 1, 20), self._number(fields, "backoff", 0, 3600)
        if times is None:
            self._add(node.line, "The field retry needs times, the number of repetitions (1 to 20).")
        return Retry(int(times or 0), 1.0 if backoff is None else backoff)

    def _mapping(self, node: YamlNode, what: str, known: tuple[str, ...]) -> dict[str, YamlNode]:
        if not isinstance(node.value, dict):
            self._add(node.line, f"{what} must be a mapping.")
            return {}
        for key in node.value:
            if key not in known:
                self._add(node.keys[key], f"{what} has no field {key!r}; it has {', '.join(known)}.")
        return {key: one for key, one in node.value.items() if key in known}

    def _text(self, node: YamlNode, fields: dict[str, YamlNode], key: str, *, required: bool = True) -> str:
        found = fields.get(key)
        if found is None or found.value is None:
            if required:
                self._add(node.line, f"The field {key} is missing.")
            return ""
        if not isinstance(found.value, str) or (required and not found.value.strip()):
            self._add(found.line, f"The field {key} must be a text.")
            return ""
        return found.value

    def _number(self, fields: dict[str, YamlNode], key: str, least: float, most: float) -> Any:
        found = fields.get(key)
        if found is None:
            return None
        value = found.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            self._add(found.line, f"The field {key} must be a number from {least:g} to {most:g}.")
            return None
        return int(value) if key in ("max_visits", "times") else float(value)

    def _template(self, node: YamlNode | None, absent: Any) -> Any:
        if node is None:
            return absent
        if isinstance(node.value, dict):
            return {key: self._template(one, None) for key, one in node.value.items()}
        if isinstance(node.value, list):
            return [self._template(one, None) for one in node.value]
        if not isinstance(node.value, str):
            return node.value
        try:
            return parse_template(node.value, node.line)
        except TemplateError as error:
            self._add(error.line, str(error))
            return node.value

    def _path(self, line: int, text: str) -> Path:
        try:
            return parse_path(text, line)
        except TemplateError as error:
            self._add(error.line, str(error))
            return ()

    def _unique(self, steps: list[WorkflowStep]) -> None:
        first: dict[str, WorkflowStep] = {}
        for step in steps:
            if step.id in first:
                self._add(
                    step.line,
                    f"The id {step.id!r} is that of the step in line {first[step.id].line} already.",
                )
            first.setdefault(step.id, step)

    def _add(self, line: int, text: str) -> None:
        self.problems.append(Problem(line, text))


def _template_problems(definition: Definition) -> Iterator[Problem]:
    """Yield the templates that name the result of a step that is not there."""
    ids = {step.id for step in definition.steps}
    for step in definition.steps:
        used = [
            (found.line, path) for found in templates_in([step.args, step.message]) for path in found.paths
        ]
        used += [(step.line, step.condition)] if step.condition else []
        for line, path in used:
            if path[0] == STEPS and (len(path) < 2 or path[1] not in ids):
                yield Problem(
                    line, f"There is no step {'.'.join(map(str, path[1:2]))!r} whose result could be used."
                )
