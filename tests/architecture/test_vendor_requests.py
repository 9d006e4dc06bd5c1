"""Texts reach a vendor in few places, so that middleware such as redaction and budgets sees all of them."""

import ast

from .sources import nodes
from .test_names import MODULES

REQUESTS = {"stream", "embed", "transcribe", "speak", "count_tokens"}
"""The methods of ``ModelAdapter`` that send texts."""

PLACES = {
    "trunkline.workers.monitor.model_registry",  # turns and completions, through all middleware
    "trunkline.workers.monitor.ability_handler",  # abilities, through middleware around requests
    "trunkline.workers.memory.embedder_selection",  # memory's vectors, through the same
}


def test_adapters_are_asked_where_middleware_sees_it():
    """A module that calls an adapter itself sends texts that no middleware has seen. Ask ``context.model``,
    ``context.abilities`` or their clients instead, or add the module here with the way in which middleware sees it.
    """
    found = {
        name
        for name, file in MODULES.items()
        if not name.startswith("trunkline.testing.")
        for node in nodes(file, ast.Call)
        if isinstance(node.func, ast.Attribute) and node.func.attr in REQUESTS
        if ast.unparse(node.func.value).lower().endswith("adapter")
    }
    assert found == PLACES
