"""The parameters that a vendor's models take, and the validation of those that settings and requests set."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec

from trunkline.errors import ConfigError

ParameterType = Literal["string", "number", "integer", "boolean", "array", "object"]

_TYPES: Mapping[ParameterType, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
}


class ModelParameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter of a vendor's API. ``models`` are patterns of the models that take it, such as ``claude-*``.

    ``choices`` are the permitted values of a string, empty for any. ``minimum`` and ``maximum`` bound a number, both
    inclusive.

    Guarantees: the methods do not change the parameter, and call nobody.

    Not guaranteed: that the vendor accepts a permitted value; the vendor may change its models.
    """

    name: str
    type: ParameterType
    doc: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    models: tuple[str, ...] = ("*",)

    def takes(self, model: str) -> bool:
        """Report whether the model takes the parameter. An unnamed model ("") takes every parameter. Raises
        nothing.
        """
        return not model or any(fnmatchcase(model, pattern) for pattern in self.models)

    def problem(self, value: Any) -> str:
        """Return why the value is not permitted, "" if it is permitted. Raises nothing."""
        if not isinstance(value, _TYPES[self.type]) or (isinstance(value, bool) and self.type != "boolean"):
            return f"must be of type {self.type}"
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}"
        if isinstance(value, int | float):
            if self.minimum is not None and value < self.minimum:
                return f"must be at least {self.minimum:g}"
            if self.maximum is not None and value > self.maximum:
                return f"must be at most {self.maximum:g}"
        return ""


def validate_parameters(
    table: Sequence[ModelParameter], values: Mapping[str, Any], *, model: str = "", place: str
) -> None:
    """Refuse parameters that are not in the table, that the model does not take, or whose value is not permitted.

    ``place`` says where the parameters were set, such as ``adapters.anthropic.parameters``.

    Raises:
        ConfigError: for the first such parameter. The hint lists the parameters that the model takes.
    """
    known = {parameter.name: parameter for parameter in table if parameter.takes(model)}
    for name, value in values.items():
        parameter = known.get(name)
        if parameter is None:
            listed = ", ".join(sorted(known)) or "none"
            taken = f"The model {model} takes" if model else "It takes"
            raise ConfigError(f"{place} has no parameter {name!r}.", hint=f"{taken}: {listed}.")
        if problem := parameter.problem(value):
            raise ConfigError(f"{place}.{name} is {value!r}, but {problem}.", hint=parameter.doc)
