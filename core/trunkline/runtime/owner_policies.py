"""The owner's policies in memory: ``policies/<id>.json``, one policy per file.

A file that cannot be read might be a denial, and so might the target of a link, since links are not followed. While
there is such a file or link, no tool may be used.
"""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from trunkline._util.json_file import line_of, read_json
from trunkline._util.toml import SettingsFileError
from trunkline.contracts.memory.bus_transport import read_files
from trunkline.contracts.memory.files import UNREADABLE, ListMemory, MemoryFile, MemoryListing
from trunkline.contracts.memory.subjects import MEMORY_LIST
from trunkline.contracts.policies.messages import Policy
from trunkline.errors import ToolError, ToolErrorKind
from trunkline.policy.validation import find_mistake
from trunkline.runtime.guard_cache import GuardCache
from trunkline_bus import Bus, RemoteFault

log = logging.getLogger(__name__)

POLICY_FOLDER = "policies"
ENDING = ".json"
TIMEOUT = 5.0

NEVER = datetime.fromtimestamp(0, UTC)

OwnerPolicies = tuple[Policy, ...]


class BrokenPolicy(ToolError):
    """A file of the folder is not a valid policy. A retry does not help."""

    kind: ToolErrorKind = "unsupported"


def owner_policy_cache(bus: Bus) -> GuardCache[OwnerPolicies]:
    """Return a cache of the owner's policies under the single name ``POLICY_FOLDER``. It raises BrokenPolicy for an
    invalid file.
    """

    async def read(folder: str) -> OwnerPolicies:
        return tuple([require_policy(file) for file in await read_policy_files(bus)])

    unknown = "The policies cannot be read now, so no tool may be used."
    return GuardCache(bus, read, counts=lambda path: path.startswith(POLICY_FOLDER), unknown=unknown)


@dataclass(frozen=True, slots=True)
class PolicyListing:
    """The content of the policy folder.

    ``paths`` are the policies. ``unread`` are the entries that cannot be read and may be or contain a policy.
    ``others`` are the paths of files whose endings show that they are not policies.
    """

    paths: tuple[str, ...] = ()
    unread: tuple[MemoryFile, ...] = ()
    others: tuple[str, ...] = ()


def classify_listing(listing: MemoryListing) -> PolicyListing:
    """Classify a listing of the folder, including the entries that cannot be read."""
    files = [entry.path for entry in listing.entries if entry.kind == "file"]
    paths = tuple(path for path in files if path.endswith(ENDING))
    unread_reasons = {
        path: f"{path} is not read: its ending is not written {ENDING}."
        for path in files
        if path not in paths
    }
    unread_reasons |= {entry.path: entry.why for entry in listing.unread}
    unreadable = {entry.path for entry in listing.unread if entry.kind != "file"}
    unread = [path for path in unread_reasons if path in unreadable or path.lower().endswith(ENDING)]
    return PolicyListing(
        paths,
        unread=tuple(unread_policy_file(path, unread_reasons[path]) for path in unread),
        others=tuple(path for path in unread_reasons if path not in unread),
    )


def unread_policy_file(path: str, why: str) -> MemoryFile:
    """Return a placeholder for an entry that cannot be read and may be a policy; ``why`` is a sentence."""
    return MemoryFile(path=path, content=UNREADABLE, hash="", modified_at=NEVER, unread=why)


async def read_policy_files(bus: Bus) -> list[MemoryFile]:
    """Return the files of the owner's policies, including placeholders for entries that cannot be read. Raises
    BusError.
    """
    found = await _list_folder(bus)
    return [*found.unread, *await read_files(bus, found.paths, timeout=TIMEOUT)]


async def _list_folder(bus: Bus) -> PolicyListing:
    try:
        request = ListMemory(path=POLICY_FOLDER, recursive=True, unread=True)
        return classify_listing(await bus.call(MEMORY_LIST, request, timeout=TIMEOUT, repeatable=True))
    except RemoteFault as fault:
        if fault.code == "not_found":
            return PolicyListing()
        if fault.code == "invalid_path":  # a link or a file is where the folder should be
            return PolicyListing(unread=(unread_policy_file(POLICY_FOLDER, fault.message),))
        raise


def require_policy(file: MemoryFile) -> Policy:
    """Return the policy of a file as ``parse_policy`` does. Raises BrokenPolicy."""
    try:
        return parse_policy(file)
    except SettingsFileError as error:
        log.error("invalid policy: %s", error)
        raise BrokenPolicy(
            f"A policy cannot be read, so no tool may be used until a person repairs or deletes it: {error}"
        ) from error


def parse_policy(file: MemoryFile) -> Policy:
    """Return the policy of a file; its id is the file's name. Raises SettingsFileError."""
    if file.unread:
        raise SettingsFileError(file.unread)
    data = file.content.encode(errors="replace")
    policy = read_json(file.path, data, Policy)
    if (mistake := find_mistake(policy)) is not None:
        raise SettingsFileError(f"{file.path}{line_of(data, mistake.field)}: {mistake.problem}")
    return msgspec.structs.replace(
        policy, id=file.path.removeprefix(f"{POLICY_FOLDER}/").removesuffix(ENDING)
    )
