"""Names that exist, for what schemathesis generates. Its own process loads this file, by ``SCHEMATHESIS_HOOKS``.

A generated name or id never exists, so every request with one is refused early. Of each two requests one gets what
``EXISTING`` (a JSON object, from an environment variable) has for its path or its field ``model``. No request that
deletes gets one: it would take the object from the requests that follow.
"""

import json
import os
from typing import Any

import schemathesis

EXISTING: dict[str, str] = json.loads(os.environ["EXISTING"])


def _chosen(generated: Any) -> bool:
    return len(str(generated)) % 2 == 0


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: Any) -> Any:
    """Put the id of an object that exists in the path."""
    operation = context.operation
    if not isinstance(path_parameters, dict) or operation.method.lower() == "delete":
        return path_parameters
    for prefix, id in EXISTING.items():
        if operation.path.startswith(f"{prefix}/{{") and _chosen(path_parameters):
            name = operation.path.removeprefix(f"{prefix}/{{").partition("}")[0]
            return {**path_parameters, name: id}
    return path_parameters


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """Ask the block that exists."""
    if (
        context.operation.path.startswith("/v1/")
        and isinstance(body, dict)
        and "model" in body
        and _chosen(body)
    ):
        return {**body, "model": "main"}
    return body
