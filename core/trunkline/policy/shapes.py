"""The shape of a call: its tool and the values of its arguments, but for those that the tool calls free."""

import json
from collections.abc import Mapping
from typing import Any

from trunkline.messages.tools import ToolSpec
from trunkline_bus import key_of


def shape_of(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """What a lasting approval is bound to: the tool, its source, and each argument by value unless it is free."""
    bound = {name: value for name, value in arguments.items() if name not in spec.free}
    return key_of(
        "shape",
        spec.source,
        spec.name,
        json.dumps(sorted(arguments)),
        json.dumps(bound, sort_keys=True, separators=(",", ":"), default=repr),
    )
