"""Access requests for memory paths, for a single path or with everything below it."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from trunkline.contracts.memory.paths import root_path
from trunkline.contracts.policies.messages import Policy
from trunkline.contracts.tools.tool import ToolInvocation
from trunkline.policy import AccessRequest, nested_resource
from trunkline.workers.tools.path_locks import argument_texts


def memory_access_requests(
    request: AccessRequest, path: str, whole: bool, policies: Iterable[Policy]
) -> Iterator[AccessRequest]:
    """Yield the request for a path from the memory root on.

    With ``whole``, also yield one for each policy about names below the path: deleting or exporting a folder
    affects everything in it.
    """
    name = f"memory:{normal_path(path)}"
    below = f"{name.rstrip('/')}/"
    yield replace(request, resources=(name,), aliases=(below,))
    if whole:
        names = {nested_resource(policy.resource, below) for policy in policies}
        yield from (replace(request, resources=(one,)) for one in sorted(filter(None, names)))


def memory_paths_of(invocation: ToolInvocation) -> Iterator[tuple[str, bool]]:
    """Yield the memory paths among the arguments, from the memory root on, and whether everything below is
    included."""
    spec, block = invocation.spec, invocation.context.block
    for names, whole in ((spec.memory_paths, False), (spec.memory_trees, True)):
        for path in argument_texts(names, invocation.arguments):
            yield normal_path(root_path(block, path)), whole


def normal_path(path: str) -> str:
    """Return a path relative to the memory root, with one slash before each name."""
    return "/" + "/".join(name for name in path.split("/") if name not in ("", "."))
