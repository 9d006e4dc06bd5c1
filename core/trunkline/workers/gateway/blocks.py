"""The block service: creates, lists, changes, stops, resets, archives, restores and deletes blocks, which are
folders of memory.

A block is stopped before its files are moved or deleted. After a crash, the same command finishes the interrupted
work.
"""

import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime

import anyio
import msgspec

from trunkline._util.toml import SettingsFileError
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.blocks.availability import unavailable_reason
from trunkline.contracts.blocks.messages import (
    Block,
    BlockConfig,
    BlockList,
    BlockStatus,
    BlockStatusName,
    BlockStopped,
    ChangeBlock,
    CreateBlock,
    DeleteBlock,
    ResetBlock,
    StopBlock,
)
from trunkline.contracts.blocks.paths import (
    BLOCK_FILE,
    BLOCK_NAME_RULE,
    BLOCKS_FOLDER,
    block_file_path,
    block_folder,
    is_block_name,
)
from trunkline.contracts.blocks.templates import BlockTemplate, BlockTemplateList
from trunkline.contracts.memory.files import MemoryFile
from trunkline.contracts.memory.initial_files import block_files, rename_monitor
from trunkline.contracts.policies.messages import PermissionTable
from trunkline.contracts.workers.subjects import PULSE_BUCKET
from trunkline.errors import ErrorCode
from trunkline.runtime.audit_log import AuditLog
from trunkline.runtime.block_access import BlockAccess
from trunkline.workers.gateway import block_file
from trunkline.workers.gateway.agents.agent_records import AgentRecords
from trunkline.workers.gateway.block_archives import BlockArchives
from trunkline.workers.gateway.block_cache import BlockCache
from trunkline.workers.gateway.block_stopper import BlockStopper, StopResult
from trunkline.workers.gateway.block_store import BlockStore, entry_name, unknown_block_error
from trunkline.workers.gateway.block_templates import BlockTemplates, with_template
from trunkline.workers.gateway.conversation_service import ConversationService
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.sender import Sender
from trunkline.workers.gateway.wake_ups import WakeUps
from trunkline.workers.gateway.workspaces import Workspaces
from trunkline_bus import Bus, Refusal, RemoteFault

log = logging.getLogger(__name__)

PRECEDENCE: tuple[BlockStatusName, ...] = ("BUSY", "ERROR", "ACTIVE", "SLEEPING")
"""The statuses in order of precedence, for a block that several monitors serve."""

OWNER_SETTINGS = frozenset({"permissions", "tools", "memory"})
"""The settings that decide what a block's agent may do."""

_KEPT_ON_RESET = frozenset({BLOCK_FILE, "monitor.md", "documents", "skills", "sliders.json"})
"""The files that the owner added or chose, which a reset keeps. All other files of a block's folder contain what its
agent received, wrote or learned."""
_KEPT_ON_HARD_RESET = frozenset({BLOCK_FILE})


class BlockService:
    """Manages blocks.

    A block exists for whoever may read it. Only the owner creates, archives, restores and deletes blocks, and changes
    what their agents may do; all else is open to those with whom the owner shares a block to operate.

    Methods raise Refusal with a fixed code, and BusError when memory does not answer.
    """

    def __init__(
        self,
        bus: Bus,
        stopping: BlockStopper,
        conversations: ConversationService,
        workspaces: Workspaces,
        cache: BlockCache,
        audit: AuditLog,
        access: BlockAccess,
        templates: BlockTemplates,
        wake_ups: WakeUps,
        agents: AgentRecords,
        default: str,
    ) -> None:
        self._bus = bus
        self._access = access
        self._templates = templates
        self._wake_ups = wake_ups
        self._agents = agents
        self._stopping = stopping
        self._audit = audit
        self._cache = cache
        self._conversations = conversations
        self._workspaces = workspaces
        self._folders = BlockStore(bus, cache)
        self._archives = BlockArchives(self._folders, workspaces)
        self._changing = anyio.Lock()
        self.default = default

    async def create(self, request: CreateBlock, sender: Sender) -> Block:
        """Create a block: its settings and its identity, in one commit. Refused with ``conflict`` when it
        exists, and with ``invalid_request`` when the template cannot be used."""
        actor = sender.require_administrator("creates blocks", TokenScope.OPERATE)
        _check_name(request.name)
        template = (
            await self._templates.require(request.template) if request.template else BlockTemplate(name="")
        )
        async with self._changing:
            if await self._folders.file(request.name) is not None:
                raise refusal(ErrorCode.CONFLICT, f"There is a block called {request.name!r} already.")
            await self._make(request, actor, template)
        return await self._get(request.name)

    async def list_templates(self, sender: Sender) -> BlockTemplateList:
        """Return what a new block can begin with, for those who may create one."""
        sender.require_administrator("creates blocks", TokenScope.OPERATE)
        return BlockTemplateList(templates=await self._templates.list_templates())

    async def ensure_default(self) -> None:
        """Create the default block if it is missing."""
        if await self._folders.file(self.default) is None:
            async with self._changing:
                if await self._folders.file(self.default) is None:
                    await self._make(CreateBlock(name=self.default), "gateway", BlockTemplate(name=""))

    @asynccontextmanager
    async def admit_message(self, name: str) -> AsyncIterator[None]:
        """Admit a message into the block for the time of the context.

        Refused as by ``check_accepts``, and while the block is being stopped.
        """
        with self._stopping.admit(name):
            await self.check_accepts(name)
            yield

    async def check_accepts(self, name: str) -> None:
        """Refuse a message for a block that takes none.

        ``not_found``: the block does not exist. ``conflict``: it is switched off, or a file that its settings
        come from cannot be read.
        """
        if not is_block_name(name):
            raise unknown_block_error(name)
        block = await self._cache.get(name)
        if block.config is None and name == self.default:
            await self.ensure_default()
            block = await self._cache.get(name)
        if block.config is None:
            raise unknown_block_error(name)
        if why := unavailable_reason(name, block.config, block.problem):
            raise refusal(ErrorCode.CONFLICT, why)

    async def get_block(self, name: str, sender: Sender) -> Block:
        """Return one block. Refused with ``not_found``."""
        await self.require(name, sender, TokenScope.READ)
        return await self._get(name)

    async def require(self, name: str, sender: Sender, action: TokenScope) -> None:
        """Return if the sender may do this in a block. Refused as by ``BlockRights.require``, with the sentence of a
        block that does not exist."""
        rights = await self._access.rights_of(sender.identity)
        if not rights.may(TokenScope.READ, name):
            raise unknown_block_error(name)
        rights.require(action, name)

    async def _get(self, name: str) -> Block:
        file = await self._folders.require_file(name)
        pulses = await self._pulses()
        return await self._block(file, pulses.get(name, BlockStatus()))

    async def list_blocks(self, sender: Sender, *, archived: bool = False) -> BlockList:
        """Return the blocks that the sender may read by name, with the archives when ``archived`` is set."""
        rights = await self._access.rights_of(sender.identity)
        names = [
            name
            for name in await self._folders.folders(BLOCKS_FOLDER)
            if is_block_name(name) and rights.may(TokenScope.READ, name)
        ]
        files = await self._folders.files(names)
        pulses = await self._pulses()
        blocks = [await self._block(file, pulses.get(_block_of(file), BlockStatus())) for file in files]
        archives = await self._archives.list_archives() if archived else ()
        return BlockList(
            blocks=tuple(sorted(blocks, key=lambda block: block.name)),
            archived=tuple(one for one in archives if rights.may(TokenScope.READ, one.name)),
        )

    async def change(self, request: ChangeBlock, sender: Sender) -> Block:
        """Change settings of a block in one commit. They apply from the next message on."""
        await self.require(request.name, sender, TokenScope.OPERATE)
        if any(key.partition(".")[0] in OWNER_SETTINGS for key in request.changes):
            sender.require_administrator("changes what an agent may do", TokenScope.OPERATE)
        return await self._change(request, sender.identity.id)

    async def _change(self, request: ChangeBlock, actor: str) -> Block:
        async with self._changing:
            file = await self._folders.require_file(request.name)
            with _refusing_bad_settings():
                text = block_file.apply_changes(file, request.changes)
            if text != file.content:
                await self._rewrite(
                    file, text, actor, f"change block {request.name}: {', '.join(request.changes)}"
                )
        return await self._get(request.name)

    async def stop(self, request: StopBlock, sender: Sender) -> BlockStopped:
        """Switch a block off. The block takes no further messages. Its turns and background tasks are ended, or with
        ``finish`` run to their end."""
        await self.require(request.name, sender, TokenScope.OPERATE)
        actor = sender.identity.id
        await self._change(ChangeBlock(name=request.name, changes={"enabled": False}), actor)
        ended = StopResult((), ())
        if not request.finish:
            async with self._stopping.stopped(request.name, actor, forget=False) as ended:
                pass
        return BlockStopped(block=await self._get(request.name), cancelled=ended.turns, tasks=ended.tasks)

    async def reset(self, request: ResetBlock, sender: Sender) -> Block:
        """Stop a block, delete its conversations and everything that its agent wrote or learned, and start the block
        again. Its settings stay. With ``hard`` its documents and its workspace are deleted too, which nothing brings
        back: only the owner does that."""
        name, actor = request.name, sender.identity.id
        await self.require(name, sender, TokenScope.OPERATE)
        if request.hard:
            sender.require_owner("deletes the documents and the workspace of a block", TokenScope.OPERATE)
        with _refusing_bad_settings():
            block_file.decode(await self._folders.require_file(name))
        async with self._stopping.stopped(name, actor), self._changing:
            stay = _KEPT_ON_HARD_RESET if request.hard else _KEPT_ON_RESET
            for entry in await self._folders.entries(block_folder(name)):
                if entry_name(entry) not in stay:
                    await self._folders.delete(entry.path, actor, f"reset block {name}")
            await self._write_initial_files(name, stay, actor)
            if request.hard:
                await self._workspaces.clear(name)
        return await self._get(name)

    async def archive(self, name: str, sender: Sender) -> None:
        """Stop a block and archive it unchanged."""
        actor = sender.require_owner("archives blocks", TokenScope.OPERATE)
        await self.require(name, sender, TokenScope.OPERATE)
        _check_name(name)
        async with self._stopping.stopped(name, actor), self._changing:
            await self._archives.archive(name, actor)

    async def restore(self, name: str, sender: Sender) -> Block:
        """Restore the newest archive of a name, byte for byte. The default block, which every start creates, makes room
        for its archive as long as it is unused.
        """
        actor = sender.require_owner("restores blocks", TokenScope.OPERATE)
        await self.require(name, sender, TokenScope.OPERATE)
        _check_name(name)
        if await self._is_unused_default(name):
            await self._replace_unused(name, actor)
        else:
            async with self._changing:
                await self._archives.restore(name, actor)
        return await self._get(name)

    async def _replace_unused(self, name: str, actor: str) -> None:
        async with self._stopping.stopped(name, actor), self._changing:
            if await self._is_unused_default(
                name
            ):  # still: a turn that was stopped may have stored its messages
                await self._delete_live(name, actor)
            await self._archives.restore(name, actor)

    async def _is_unused_default(self, name: str) -> bool:
        """Report whether a block is the default block as a start creates it, while a block of that name is archived."""
        file = await self._folders.file(name) if name == self.default else None
        if file is None or await self._workspaces.has(name) or not await self._archives.has_archive(name):
            return False
        folder, new = block_folder(name), BlockConfig()
        own = block_files(name, new.monitor_name, new.monitor_emoji)
        texts = {f"{folder}/{one}": text for one, text in own.items()}
        if {one.path for one in await self._folders.entries(folder)} != {file.path, *texts}:
            return False
        try:
            is_default = block_file.decode(file) == new
        except SettingsFileError:
            return False
        return is_default and all(one.content == texts[one.path] for one in await self._folders.read(*texts))

    async def delete(self, request: DeleteBlock, sender: Sender) -> None:
        """Stop a block and delete it, or with ``archived`` delete its newest archive. The workspace is
        deleted too.

        Memory's history keeps the deleted files; only a purge removes them.
        """
        name, actor = request.name, sender.require_owner("deletes blocks")
        await self.require(name, sender, TokenScope.OWNER)
        _check_name(name)
        if request.archived:
            async with self._changing:
                return await self._archives.delete(name, actor)
        async with self._stopping.stopped(name, actor), self._changing:
            await self._delete_live(name, actor)

    async def _delete_live(self, name: str, actor: str) -> None:
        """Move the workspace to the trash, then delete the folder in memory: a new block of this name never
        gets the old workspace."""
        exists = await self._folders.file(name) is not None
        if not exists and await self._archives.unfinished_archive(name):
            sentence = f"The archiving of {name!r} was cut short. Finish it: trunkline blocks archive {name}"
            raise refusal(ErrorCode.CONFLICT, sentence)
        has_workspace = await self._workspaces.has(name) or name in await self._workspaces.trashed()
        if not exists and not has_workspace:
            raise unknown_block_error(name)
        await self._workspaces.trash(name)
        if exists:
            try:
                await self._folders.delete(block_folder(name), actor, f"delete block {name}")
            except (Refusal, RemoteFault):
                await self._workspaces.untrash(name)
                raise
        await self._agents.remove_agents_of(name)
        await self._workspaces.remove(name)

    async def _clear_stale_workspace(self, name: str) -> None:
        """Remove, archive or move the workspace of an earlier block of this name, so that a new block does not get it.

        Such a workspace remains when archiving or deletion was interrupted, or when a person removed the
        block's folder from memory. Files that the owner puts there before the block first exists are left in
        place.
        """
        if name in await self._workspaces.trashed():
            await self._workspaces.remove(name)
        if (archive := await self._archives.unfinished_archive(name)) is not None:
            await self._workspaces.archive(name, archive)
        if await self._workspaces.has(name) and await self._folders.has_history(name):
            log.warning(
                "the workspace of an earlier block %s was moved to %s",
                name,
                await self._workspaces.set_aside(name),
            )

    async def _make(self, request: CreateBlock, actor: str, template: BlockTemplate) -> None:
        await self._clear_stale_workspace(request.name)
        config, folder = with_template(template, request.config), block_folder(request.name)
        files = {block_file_path(request.name): block_file.encode(config, datetime.now(UTC))}
        own = block_files(
            request.name,
            config.monitor_name,
            config.monitor_emoji,
            personality=template.personality,
            roles=template.roles,
        )
        files |= {f"{folder}/{name}": text for name, text in own.items()}
        await self._folders.write(files, {}, actor, f"create block {request.name}")
        await self._write_audit(request.name, PermissionTable(), config.permissions, actor)

    async def _rewrite(self, file: MemoryFile, text: str, actor: str, reason: str) -> None:
        """Write a block's settings. A changed name or emoji is also written to ``monitor.md``."""
        name, old = _block_of(file), block_file.decode(file)
        new = block_file.decode(msgspec.structs.replace(file, content=text))
        files, expected = {file.path: text}, {file.path: file.hash}
        if (new.monitor_name, new.monitor_emoji) != (old.monitor_name, old.monitor_emoji):
            for monitor in await self._folders.read(f"{block_folder(name)}/monitor.md"):
                files[monitor.path] = rename_monitor(monitor.content, new.monitor_name, new.monitor_emoji)
                expected[monitor.path] = monitor.hash
        await self._folders.write(files, expected, actor, reason)
        await self._write_audit(name, old.permissions, new.permissions, actor)

    async def _write_initial_files(self, name: str, stay: frozenset[str], actor: str) -> None:
        """Write the files of a new block that the reset removed. A block that lost its identity also loses
        its name."""
        file = await self._folders.require_file(name)
        if "monitor.md" not in stay:
            without = block_file.apply_changes(file, {"monitor_name": None, "monitor_emoji": None})
            file = msgspec.structs.replace(file, content=without)
        config = block_file.decode(file)
        own = block_files(name, config.monitor_name, config.monitor_emoji)
        files = {f"{block_folder(name)}/{one}": text for one, text in own.items() if one not in stay}
        await self._folders.write(
            {file.path: file.content, **files}, {file.path: file.hash}, actor, f"reset block {name}"
        )

    async def _write_audit(self, name: str, old: PermissionTable, new: PermissionTable, actor: str) -> None:
        """Record a change of the block's permissions in the audit log."""
        if new != old:
            new_json, old_json = (msgspec.json.encode(table).decode() for table in (new, old))
            why = f"{new_json} instead of {old_json}."
            await self._audit.record(event="permissions", block=name, actor=actor, by=(actor,), why=why)

    async def _block(self, file: MemoryFile, pulse: BlockStatus) -> Block:
        name, problem = _block_of(file), ""
        try:
            config = block_file.decode(file)
        except SettingsFileError as error:
            config, problem = BlockConfig(enabled=False), str(error)
            pulse = BlockStatus(status="ERROR", error=ErrorCode.INVALID_REQUEST)
        return Block(
            name=name,
            config=config,
            problem=problem,
            pulse=msgspec.structs.replace(pulse, next_wake_up=self._wake_ups.next_of(name)),
            created_at=block_file.created_on(file.content) or file.modified_at,
            conversations=await self._conversations.count(name),
        )

    async def _pulses(self) -> dict[str, BlockStatus]:
        """Return the status of each block, merged over all live monitors."""
        beats = [entry.value for entry in await self._bus.kv(PULSE_BUCKET).entries() if entry.value]
        return {
            block: merge_pulses(beat.pulse for beat in beats if beat.block == block)
            for block in {beat.block for beat in beats}
        }


def merge_pulses(pulses: Iterable[BlockStatus]) -> BlockStatus:
    """Return one status out of those of several monitors: the status with the highest precedence and the
    latest times."""
    ranked = sorted(pulses, key=lambda pulse: PRECEDENCE.index(pulse.status))
    times = [pulse.last_run for pulse in ranked if pulse.last_run]
    beats = [pulse.last_pulse for pulse in ranked if pulse.last_pulse]
    return msgspec.structs.replace(
        ranked[0], last_run=max(times, default=None), last_pulse=max(beats, default=None)
    )


@contextmanager
def _refusing_bad_settings() -> Iterator[None]:
    """Turn a setting that no block has, and a file that cannot be read, into refusals that name the field or
    file."""
    try:
        yield
    except block_file.UnknownSettingError as error:
        raise InvalidField(tuple(error.key.split(".")), str(error)) from error
    except SettingsFileError as error:
        sentence = f"Nothing was changed, because a file cannot be read. Repair it first. {error}"
        raise refusal(ErrorCode.CONFLICT, sentence) from error


def _check_name(name: str) -> None:
    if not is_block_name(name):
        raise InvalidField(("name",), f"A block's name is {BLOCK_NAME_RULE}.")


def _block_of(file: MemoryFile) -> str:
    return file.path.split("/")[-2]
