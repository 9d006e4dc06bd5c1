"""The shape of a call: its tool and the values of its arguments, but for those that the tool calls free. Paths among
them are given here as what they lead to.

Of the address of a page its host counts: who allows one page for longer allows that host.
"""

import json
from collections.abc import Mapping
from typing import Any

from trunkline._util.egress.urls import UrlRefused, parse_url
from trunkline.contracts.tools.messages import ToolSpec
from trunkline_bus import key_of


def shape_of(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Return the shape that a lasting approval is bound to: the tool, its source, what that source says of it, and
    each argument by value unless it is free.
    """
    bound = bound_arguments(spec, arguments)
    return key_of(
        "shape",
        spec.source,
        spec.name,
        spec.definition,
        json.dumps(bound, sort_keys=True, separators=(",", ":"), default=repr),
    )


def bound_arguments(spec: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a lasting approval binds, by name: whole values, and of addresses the host."""
    return {
        name: _host(value) if name in spec.urls else value
        for name, value in arguments.items()
        if name not in spec.unbound_params
    }


def _host(value: Any) -> Any:
    try:
        return parse_url(value).host if isinstance(value, str) else value
    except UrlRefused:
        return value
