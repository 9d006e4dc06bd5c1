"""The owner's policies, as they lie in memory: ``policies/<id>.json``, one rule a file.

One that cannot be read might be a denial, and so might what a link leads to, which nobody follows. So while there is
one, no tool may be used.
"""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from trunkline._util.json_file import line_of, read_json
from trunkline._util.toml import BadSettings
from trunkline.contracts.memory.messages import (
    UNREADABLE,
    ListMemory,
    MemoryFile,
    MemoryListing,
    ReadManyMemory,
)
from trunkline.contracts.memory.subjects import MEMORY_LIST, MEMORY_READ_MANY
from trunkline.contracts.policies.messages import Policy
from trunkline.errors import ToolError, ToolErrorKind
from trunkline.policy.validation import slip_in
from trunkline.workers.tools.guard_cache import Remembered
from trunkline_bus import Bus, RemoteFault

log = logging.getLogger(__name__)

FOLDER = "policies"
ENDING = ".json"
PATIENCE = 5.0
AT_ONCE = 200
"""Files that are asked for in one message."""

NEVER = datetime.fromtimestamp(0, UTC)

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


@dataclass(frozen=True, slots=True)
class Lying:
    """What lies in the folder: the ``paths`` of policies; ``shut``, what may be or hold one and is not read; and
    ``others``, the paths of files that are none by their endings."""

    paths: tuple[str, ...] = ()
    shut: tuple[MemoryFile, ...] = ()
    others: tuple[str, ...] = ()


def told_apart(listing: MemoryListing) -> Lying:
    """What lies in the folder, by a listing of it with what is not read."""
    files = [entry.path for entry in listing.entries if entry.kind == "file"]
    paths = tuple(path for path in files if path.endswith(ENDING))
    left = {
        path: f"{path} is not read: its ending is not written {ENDING}."
        for path in files
        if path not in paths
    }
    left |= {entry.path: entry.why for entry in listing.unread}
    hiding = {entry.path for entry in listing.unread if entry.kind != "file"}
    shut = [path for path in left if path in hiding or path.lower().endswith(ENDING)]
    return Lying(
        paths,
        shut=tuple(unread_policy(path, left[path]) for path in shut),
        others=tuple(path for path in left if path not in shut),
    )


def unread_policy(path: str, why: str) -> MemoryFile:
    """What may be a policy and is not read; ``why`` is a sentence."""
    return MemoryFile(path=path, content=UNREADABLE, hash="", modified_at=NEVER, unread=why)


async def policy_files(bus: Bus) -> list[MemoryFile]:
    """The files of the owner's policies, as they are; among them what may be one and is not read. Raises BusError."""
    found = await _lying(bus)
    files = list(found.shut)
    for first in range(0, len(found.paths), AT_ONCE):
        wish = ReadManyMemory(paths=found.paths[first : first + AT_ONCE])
        files += (await bus.call(MEMORY_READ_MANY, wish, timeout=PATIENCE, repeatable=True)).files
    return files


async def _lying(bus: Bus) -> Lying:
    try:
        wish = ListMemory(path=FOLDER, recursive=True, unread=True)
        return told_apart(await bus.call(MEMORY_LIST, wish, timeout=PATIENCE, repeatable=True))
    except RemoteFault as fault:
        if fault.code == "not_found":
            return Lying()
        if fault.code == "invalid_path":  # a link or a file is in the place of the folder
            return Lying(shut=(unread_policy(FOLDER, fault.message),))
        raise


def policy_in(file: MemoryFile) -> Policy:
    """As ``read_policy``. Raises BrokenPolicy."""
    try:
        return read_policy(file)
    except BadSettings as error:
        log.error("no policy: %s", error)
        raise BrokenPolicy(
            f"A policy cannot be read, so no tool may be used until a person mends or deletes it: {error}"
        ) from error


def read_policy(file: MemoryFile) -> Policy:
    """The policy of a file; its id is the file's name. Raises BadSettings."""
    if file.unread:
        raise BadSettings(file.unread)
    data = file.content.encode(errors="replace")
    policy = read_json(file.path, data, Policy)
    if (slip := slip_in(policy)) is not None:
        raise BadSettings(f"{file.path}{line_of(data, slip.field)}: {slip.said}")
    return msgspec.structs.replace(policy, id=file.path.removeprefix(f"{FOLDER}/").removesuffix(ENDING))
