"""Parameters of the model that a person sets for the session: ``/params temperature=0.2``. Pure functions."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from trunkline import TrunklineError
from trunkline.api.gateway import SendMessage

HINT = "Say /params KEY=VALUE, for example /params temperature=0.2 max_tokens=500."


def read_parameters(text: str) -> dict[str, Any]:
    """Return the parameters in a text ``key=value key=value``. A value that is JSON is read so, any other one is text.

    Raises:
        TrunklineError: the text has another form, or a value cannot be right.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise TrunklineError(f"The parameters cannot be read: {error}.", hint=HINT) from error
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (equals and key.isidentifier()):
            raise TrunklineError(f"{word!r} is no parameter.", hint=HINT)
        found[key] = _value(value)
    _check(found)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _check(parameters: Mapping[str, Any]) -> None:
    temperature, longest = parameters.get("temperature", 0), parameters.get("max_tokens", 1)
    if isinstance(temperature, bool) or not isinstance(temperature, int | float):
        raise TrunklineError("temperature is a number.", hint=HINT)
    if isinstance(longest, bool) or not isinstance(longest, int) or longest < 1:
        raise TrunklineError("max_tokens is a whole number above 0.", hint=HINT)


def describe_parameters(parameters: Mapping[str, Any]) -> str:
    """Return the parameters in words."""
    if not parameters:
        return "No parameter is set here: the settings of the models decide."
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in parameters.items()]
    return "\n".join([*lines, "For your next messages in this session. /params default ends it."])


def with_parameters(message: SendMessage, parameters: Mapping[str, Any]) -> SendMessage:
    """Return the message with the parameters. Those that its model does not take are not sent to the model."""
    if not parameters:
        return message
    others = {key: value for key, value in parameters.items() if key not in ("temperature", "max_tokens")}
    return replace(
        message,
        temperature=parameters.get("temperature"),
        max_tokens=parameters.get("max_tokens"),
        parameters=others,
    )
