"""The shape of a call: its tool and the values of its arguments, except those that the tool declares unbound. A path
argument is represented by the path to which it resolves.

A page's address is represented by its host: a lasting approval of one page covers that host.
"""

import json
from collections.abc import Mapping
from typing import Any

from trunkline._util.egress.urls import UrlRefused, parse_url
from trunkline.contracts.tools.messages import ToolSpec
from trunkline_bus import key_of


def shape_of(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Return the shape that a lasting approval is bound to: the tool, its source, its definition, and every
    argument except unbound ones."""
    bound = bound_arguments(spec, arguments)
    return key_of(
        "shape",
        spec.source,
        spec.name,
        spec.definition,
        json.dumps(bound, sort_keys=True, separators=(",", ":"), default=repr),
    )


def bound_arguments(spec: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a lasting approval fixes, by name: complete values, and the hosts of addresses."""
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
