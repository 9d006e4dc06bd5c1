"""The owner's policies, as they lie in memory: ``policies/<id>.json``, one rule a file.

One that cannot be read might be a denial, and so might what a link leads to, which nobody follows. So while there is
one, no tool may be used.
"""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from trunkline._util.json_file import line_of, read_json
from trunkline._util.toml import SettingsFileError
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
from trunkline.policy.validation import find_mistake
from trunkline.workers.tools.guard_cache import GuardCache
from trunkline_bus import Bus, RemoteFault

log = logging.getLogger(__name__)

POLICY_FOLDER = "policies"
ENDING = ".json"
PATIENCE = 5.0
AT_ONCE = 200
"""Files that are asked for in one message."""

NEVER = datetime.fromtimestamp(0, UTC)

OwnerPolicies = tuple[Policy, ...]


class BrokenPolicy(ToolError):
    """A file of the folder is no policy; waiting does not help."""

    kind: ToolErrorKind = "unsupported"


def owner_policy_cache(bus: Bus) -> GuardCache[OwnerPolicies]:
    """The owner's policies, under the one name ``POLICY_FOLDER``. Raises BrokenPolicy besides."""

    async def read(folder: str) -> OwnerPolicies:
        return tuple([require_policy(file) for file in await read_policy_files(bus)])

    unknown = "The policies cannot be read now, so nothing may be done."
    return GuardCache(bus, read, counts=lambda path: path.startswith(POLICY_FOLDER), unknown=unknown)


@dataclass(frozen=True, slots=True)
class PolicyListing:
    """What lies in the folder: the ``paths`` of policies; ``shut``, what may be or hold one and is not read; and
    ``others``, the paths of files that are none by their endings."""

    paths: tuple[str, ...] = ()
    unread: tuple[MemoryFile, ...] = ()
    others: tuple[str, ...] = ()


def classify_listing(listing: MemoryListing) -> PolicyListing:
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
    return PolicyListing(
        paths,
        unread=tuple(unread_policy_file(path, left[path]) for path in shut),
        others=tuple(path for path in left if path not in shut),
    )


def unread_policy_file(path: str, why: str) -> MemoryFile:
    """What may be a policy and is not read; ``why`` is a sentence."""
    return MemoryFile(path=path, content=UNREADABLE, hash="", modified_at=NEVER, unread=why)


async def read_policy_files(bus: Bus) -> list[MemoryFile]:
    """The files of the owner's policies, as they are; among them what may be one and is not read. Raises BusError."""
    found = await _list_folder(bus)
    files = list(found.unread)
    for first in range(0, len(found.paths), AT_ONCE):
        wish = ReadManyMemory(paths=found.paths[first : first + AT_ONCE])
        files += (await bus.call(MEMORY_READ_MANY, wish, timeout=PATIENCE, repeatable=True)).files
    return files


async def _list_folder(bus: Bus) -> PolicyListing:
    try:
        wish = ListMemory(path=POLICY_FOLDER, recursive=True, unread=True)
        return classify_listing(await bus.call(MEMORY_LIST, wish, timeout=PATIENCE, repeatable=True))
    except RemoteFault as fault:
        if fault.code == "not_found":
            return PolicyListing()
        if fault.code == "invalid_path":  # a link or a file is in the place of the folder
            return PolicyListing(unread=(unread_policy_file(POLICY_FOLDER, fault.message),))
        raise


def require_policy(file: MemoryFile) -> Policy:
    """As ``parse_policy``. Raises BrokenPolicy."""
    try:
        return parse_policy(file)
    except SettingsFileError as error:
        log.error("no policy: %s", error)
        raise BrokenPolicy(
            f"A policy cannot be read, so no tool may be used until a person mends or deletes it: {error}"
        ) from error


def parse_policy(file: MemoryFile) -> Policy:
    """The policy of a file; its id is the file's name. Raises BadSettings."""
    if file.unread:
        raise SettingsFileError(file.unread)
    data = file.content.encode(errors="replace")
    policy = read_json(file.path, data, Policy)
    if (slip := find_mistake(policy)) is not None:
        raise SettingsFileError(f"{file.path}{line_of(data, slip.field)}: {slip.said}")
    return msgspec.structs.replace(
        policy, id=file.path.removeprefix(f"{POLICY_FOLDER}/").removesuffix(ENDING)
    )
