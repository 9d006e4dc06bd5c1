"""The part of memory that the context of a turn comes from. Whoever may read all of memory gets all of it.

The turns of anyone else get what the permissions of their credential include, and the instructions and settings of the
agents, which hold in every block. The owner's facts are in neither (ADR 79).
"""

from collections.abc import Mapping

from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.contracts.memory.client import Memory
from trunkline.contracts.memory.files import MemoryFile
from trunkline.contracts.memory.learned_visibility import recipient_of
from trunkline.contracts.memory.paths import root_path
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.errors import ToolError
from trunkline.policy import ActorPermissions
from trunkline.policy.turn_permissions import initial_permissions
from trunkline_bus import Bus

ACTOR = "monitor"

INSTRUCTION_FILES = frozenset({"/AGENT.md", "/identity/SOUL.md", "/preferences.toml", "/sliders.json"})
"""The files of the whole memory that instruct agents or set how they work, for everybody who talks to them."""

INSTRUCTION_FOLDERS = ("/personalities/", "/models/", "/prompts/")
"""The folders of such files. Skills are none, because the tools of the turn could not read them. What was learned in
``models`` is shown only to the person of whom it was learned."""


class ContextAccess:
    """Decides about paths for the context sources of a turn with these permissions."""

    def __init__(self, permissions: ActorPermissions) -> None:
        self._permissions = permissions

    def allows(self, path: str, whole: bool = False) -> bool:
        """Report whether a path from the memory root, or everything below it, may be read."""
        plain = "/" + "/".join(name for name in path.split("/") if name not in ("", "."))
        if self._permissions.allows_memory(plain, whole):
            return True
        return plain in INSTRUCTION_FILES or f"{plain}/".startswith(INSTRUCTION_FOLDERS)

    async def __call__(self, path: str, action: str, whole: bool) -> None:
        """Raise ToolError if the path may not be read. Context sources do not write for other people."""
        if action != "read" or not self.allows(path, whole):
            raise ToolError(
                f"The permissions of this turn do not include {path} in memory.", kind="permission_denied"
            )


def turn_memory(bus: Bus, request: TurnRequested) -> Memory:
    """Return the memory that plugins may use for a turn."""
    permissions = initial_permissions(request)
    if permissions.allows_memory("/", whole=True):
        return block_memory(bus, request.block, ACTOR)
    return block_memory(
        bus,
        request.block,
        ACTOR,
        check_access=ContextAccess(permissions),
        recipient=recipient_of(request.block, request.actor),
    )


def turn_files(request: TurnRequested, files: Mapping[str, MemoryFile]) -> Mapping[str, MemoryFile]:
    """Return those of the files, by the names that a block has for them, that plugins may use for a turn."""
    access = ContextAccess(initial_permissions(request))
    return {name: file for name, file in files.items() if access.allows(root_path(request.block, name))}
