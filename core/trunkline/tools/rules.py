"""The owner's policies, as they lie in memory: ``policies/<id>.json``, one rule a file.

One that cannot be read might be a denial. So while there is one, no tool may be used.
"""

import logging

import msgspec

from trunkline.errors import ToolError, ToolErrorKind
from trunkline.json_file import read_json
from trunkline.messages.memory import ListMemory, MemoryFile, ReadManyMemory
from trunkline.messages.policies import Policy
from trunkline.subjects import MEMORY_LIST, MEMORY_READ_MANY
from trunkline.toml import BadSettings
from trunkline.tools.remembered import Remembered
from trunkline_bus import Bus, RemoteFault

log = logging.getLogger(__name__)

FOLDER = "policies"
PATIENCE = 5.0
AT_ONCE = 200
"""Files that are asked for in one message."""

Rules = tuple[Policy, ...]


class BrokenPolicy(ToolError):
    """A file of the folder is no policy; waiting does not help."""

    kind: ToolErrorKind = "unsupported"


def owners_policies(bus: Bus) -> Remembered[Rules]:
    """The owner's policies, under the one name ``FOLDER``. Raises BrokenPolicy besides."""

    async def read(folder: str) -> Rules:
        return tuple([policy_in(file) for file in await policy_files(bus)])

    unknown = "The policies cannot be read now, so nothing may be done."
    return Remembered(bus, read, counts=lambda path: path.startswith(FOLDER), unknown=unknown)


async def policy_files(bus: Bus) -> list[MemoryFile]:
    """The files of the owner's policies, as they are. Raises BusError."""
    paths = await _paths(bus)
    files: list[MemoryFile] = []
    for first in range(0, len(paths), AT_ONCE):
        wish = ReadManyMemory(paths=tuple(paths[first : first + AT_ONCE]))
        files += (await bus.call(MEMORY_READ_MANY, wish, timeout=PATIENCE, repeatable=True)).files
    return files


async def _paths(bus: Bus) -> list[str]:
    try:
        wish = ListMemory(path=FOLDER, recursive=True)
        found = await bus.call(MEMORY_LIST, wish, timeout=PATIENCE, repeatable=True)
    except RemoteFault as fault:
        if fault.code == "not_found":
            return []
        raise
    return [entry.path for entry in found.entries if entry.kind == "file" and entry.path.endswith(".json")]


def policy_in(file: MemoryFile) -> Policy:
    """The policy of a file; its id is the file's name. Raises BrokenPolicy."""
    try:
        policy = read_json(file.path, file.content.encode(errors="replace"), Policy)
    except BadSettings as error:
        log.error("no policy: %s", error)
        raise BrokenPolicy(
            f"A policy cannot be read, so no tool may be used until a person mends or deletes it: {error}"
        ) from error
    name = file.path.removeprefix(f"{FOLDER}/").removesuffix(".json")
    return msgspec.structs.replace(policy, id=name)
