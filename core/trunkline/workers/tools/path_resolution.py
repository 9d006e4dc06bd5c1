"""Resolves the paths of a call. An approval is bound to the resolved paths, because a name may mean another file
later.
"""

from collections.abc import Mapping
from typing import Any

from trunkline._util.paths import PathRefused, is_absolute_path, real_path
from trunkline.contracts.tools.messages import ToolSpec


def resolved_arguments(spec: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with each absolute path replaced by its current target, without links, ``..`` and ``~``.

    A path in the block's folder stays unchanged, since links in that folder are not followed. A refused path also
    stays unchanged, since no call runs with it.
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
