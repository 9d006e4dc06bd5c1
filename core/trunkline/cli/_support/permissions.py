"""Reads and changes a block's permissions in memory, as the owner. Does not ask or print."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from trunkline._util.toml import SettingsFileError
from trunkline.cli._support.blocks import block_names, unknown_block_error
from trunkline.config import load_config
from trunkline.contracts.actors import OWNER
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.blocks.paths import BLOCK_FILE, block_file_path
from trunkline.contracts.memory.files import MemoryFile, ReadMemory, WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_READ, MEMORY_WRITE_MANY
from trunkline.contracts.policies.messages import Conditions, PermissionTable, Policy
from trunkline.errors import ConfigError, ToolError
from trunkline.policy import DEFAULT_TABLE, table_policies
from trunkline.policy.explanation import PermissionExplanation, explain_permissions
from trunkline.policy.presets import HOST_NETWORK
from trunkline.runtime.audit_log import new_entry
from trunkline.runtime.owner_policies import POLICY_FOLDER, read_policy_files, require_policy
from trunkline.workers.gateway import block_file
from trunkline_bus import Bus, RemoteFault, new_id

MEMORY_TIMEOUT = 10.0
"""Seconds that a command waits for memory to read or write permissions."""


class TimedGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A permission that can be granted for some minutes: its title, resource and action."""

    title: str
    resource: str
    action: str


TIMED_GRANTS = {
    "god": TimedGrant(title="God Mode", resource="*", action="*"),
    "host-network": TimedGrant(title="This machine's network", resource=HOST_NETWORK, action="network"),
}
"""The grants, by the prefix of the names of their policies."""


class PermissionChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The effective value of one choice: its name, its value in words, and the file that sets it, or ``default``."""

    name: str
    value: str
    origin: str


def _unsaid(table: PermissionTable) -> dict[str, str]:
    """Return the effective values of choices that neither the block nor the deployment sets, as the presets define
    them.
    """
    system = (table.scope or DEFAULT_TABLE.scope) == "system"
    return {
        "scope": "block",
        "allow_shell": "true, as the scope is system" if system else "not permitted",
        "allow_network": "tools only",
        "max_timeout": "the tool's own",
        "approvals": "some",
        "plan": "false",
    }


class EffectivePermissions(msgspec.Struct, frozen=True, kw_only=True):
    """The permissions of a block. ``own`` is the block's own table, ``defaults`` the deployment's, ``choices`` the
    result of both. ``policies`` are the owner's policies, without those of other blocks.
    """

    block: str
    own: PermissionTable
    defaults: PermissionTable
    lines: tuple[PermissionExplanation, ...]
    choices: tuple[PermissionChoice, ...]
    policies: tuple[Policy, ...]


def _choices(table: PermissionTable, defaults: PermissionTable) -> Iterator[PermissionChoice]:
    unsaid = _unsaid(table.with_defaults(defaults))
    for name in PermissionTable.__struct_fields__:
        own, default = getattr(table, name), getattr(defaults, name)
        if own is not None:
            yield PermissionChoice(name=name, value=_shown(own), origin=BLOCK_FILE)
        elif default is not None and default != getattr(DEFAULT_TABLE, name):
            yield PermissionChoice(name=name, value=_shown(default), origin="trunkline.toml")
        else:
            yield PermissionChoice(
                name=name, value=unsaid[name] if default is None else _shown(default), origin="default"
            )


async def read_permissions(bus: Bus, block: str) -> EffectivePermissions:
    """Return the current permissions of a block. Raises ConfigError when the block does not exist or a file cannot be
    read.
    """
    said = _config(await _block_file(bus, block)).permissions
    defaults = load_config().settings.permissions
    try:
        owners = [require_policy(file) for file in await read_policy_files(bus)]
    except ToolError as error:
        raise ConfigError(str(error), hint=f"The file is in the folder {POLICY_FOLDER} of memory.") from error
    policies = [*table_policies(block, said.with_defaults(defaults)), *owners]
    speaking = tuple(
        one for one in owners if one.subject == f"block:{block}" or not one.subject.startswith("block:")
    )
    return EffectivePermissions(
        block=block,
        own=said,
        defaults=defaults,
        lines=tuple(explain_permissions(block, policies, datetime.now(UTC))),
        choices=tuple(_choices(said, defaults)),
        policies=speaking,
    )


async def apply_and_read(
    bus: Bus,
    block: str,
    changes: Mapping[str, Any],
    minutes: Mapping[str, int],
    conversation: str | None = None,
) -> EffectivePermissions:
    """Apply the changes, grant the ``TIMED_GRANTS`` for the given minutes, and return the resulting permissions."""
    if changes:
        await change_permissions(bus, block, changes)
    for name, many in minutes.items():
        await grant_for_minutes(bus, block, name, many, conversation)
    return await read_permissions(bus, block)


async def change_permissions(bus: Bus, block: str, changes: Mapping[str, Any]) -> None:
    """Write choices into the block's ``block.toml``. Comments and order are kept."""
    file = await _block_file(bus, block)
    changes = {name: changes[name] for name in PermissionTable.__struct_fields__ if name in changes}
    with _naming_the_file():
        text = block_file.apply_changes(
            file, {f"permissions.{name}": value for name, value in changes.items()}
        )
    said = ", ".join(f"{name} = {_shown(value)}" for name, value in changes.items())
    request = WriteManyMemory(
        files={file.path: text},
        expected={file.path: file.hash},
        actor=OWNER,
        reason=f"permissions of {block}: {said}",
    )
    await bus.call(MEMORY_WRITE_MANY, request, timeout=MEMORY_TIMEOUT)
    await append_audit_entry(bus, block, f"{said}.")


async def grant_for_minutes(
    bus: Bus, block: str, name: str, minutes: int, conversation: str | None = None
) -> None:
    """Grant the permission of ``TIMED_GRANTS`` with this name for some minutes. An earlier grant of the same name is
    replaced; 0 minutes only end it.
    """
    given = TIMED_GRANTS[name]
    await _block_file(bus, block)
    now = datetime.now(UTC)
    gone = [
        file.path
        for file in await read_policy_files(bus)
        if file.path.startswith(f"{POLICY_FOLDER}/{name}-") and _speaks(file, block)
    ]
    files = {}
    if minutes:
        policy = Policy(
            subject=f"block:{block}",
            resource=given.resource,
            action=given.action,
            effect="allow",
            conditions=Conditions(until=now + timedelta(minutes=minutes), conversation=conversation),
            created=now,
            created_by=OWNER,
        )
        path = f"{POLICY_FOLDER}/{name}-{block}-{new_id()[-8:].lower()}.json"
        files[path] = msgspec.json.format(msgspec.json.encode(policy), indent=2).decode() + "\n"
    where = f" in {conversation}" if conversation else ""
    said = f"{given.title} for {minutes} minutes{where}." if minutes else f"{given.title} was ended."
    if files or gone:
        request = WriteManyMemory(
            files=files, gone=tuple(gone), actor=OWNER, reason=f"permissions of {block}: {said}"
        )
        await bus.call(MEMORY_WRITE_MANY, request, timeout=MEMORY_TIMEOUT)
    await append_audit_entry(bus, block, said)


async def append_audit_entry(bus: Bus, block: str, description: str) -> None:
    """Append an entry about the owner's change to the audit log."""
    line = new_entry(event="permissions", block=block, actor=OWNER, by=(OWNER,), why=description)
    await bus.append(AUDIT, line, msg_id=line.id, block=block)


async def _block_file(bus: Bus, block: str) -> MemoryFile:
    """Return the block's settings file. Raises ConfigError when there is no such block."""
    try:
        return await bus.call(MEMORY_READ, ReadMemory(path=block_file_path(block)), timeout=MEMORY_TIMEOUT)
    except RemoteFault as fault:
        if fault.code not in ("not_found", "invalid_path"):
            raise
        raise unknown_block_error(block, await block_names(bus)) from fault


def _config(file: MemoryFile) -> BlockConfig:
    with _naming_the_file():
        return block_file.decode(file)


@contextmanager
def _naming_the_file() -> Iterator[None]:
    """Convert the error of an invalid file to a ConfigError that names the file."""
    try:
        yield
    except SettingsFileError as error:
        hint = "Until it is corrected this block's agent may use no tools."
        raise ConfigError(f"{error} Nothing was changed.", hint=hint) from error


def _speaks(file: MemoryFile, block: str) -> bool:
    try:
        return require_policy(file).subject == f"block:{block}"
    except ToolError:
        return False


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
