"""Where the paths of a call lead, which is what a person's yes is for: while it counts, a name may come to mean another
file."""

from collections.abc import Mapping
from typing import Any

from trunkline._util.paths import PathRefused, is_absolute_path, real_path
from trunkline.contracts.tools.messages import ToolSpec


def resolved_arguments(spec: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with each absolute path among them as the place that it leads to now: without links, ``..`` and
    ``~``.

    A path of the block's folder stays as it is, since no link in it is followed; so does one that is refused, with
    which no call is run.
    """
    return {
        name: _resolved_value(value) if name in spec.paths else value for name, value in arguments.items()
    }


def _resolved_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_resolved_value(one) for one in value]
    if not isinstance(value, str) or not is_absolute_path(value):
        return value
    try:
        return real_path(value)
    except PathRefused:
        return value
