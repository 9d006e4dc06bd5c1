"""Names that exist, for what schemathesis generates. Its own process loads this file, by ``SCHEMATHESIS_HOOKS``.

A generated name or id never exists, so every request with one is refused early. Of each two requests one gets what
``EXISTING`` has for the beginning of its path; the longest beginning decides. ``EXISTING`` is an environment variable
with a JSON object. No request that deletes gets one: it would take the object from the requests that follow. The field
``model`` gets the name of a block in the same way.
"""

import json
import os
import zlib
from typing import Any

import schemathesis

EXISTING: dict[str, dict[str, str]] = json.loads(os.environ["EXISTING"])


def _chosen(generated: Any) -> bool:
    return zlib.crc32(repr(generated).encode(errors="surrogatepass")) % 2 == 0


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: Any) -> Any:
    """Put the ids of objects that exist in the path."""
    operation = context.operation
    if operation.method.lower() == "delete" or not _chosen(path_parameters):
        return path_parameters
    beginnings = [beginning for beginning in EXISTING if operation.path.startswith(beginning)]
    if not beginnings or not isinstance(path_parameters, dict):
        return path_parameters
    existing = EXISTING[max(beginnings, key=len)]
    return {name: existing.get(name, generated) for name, generated in path_parameters.items()}


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
