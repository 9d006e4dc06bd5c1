"""The block service: blocks are folders of memory, made, listed, put away, restored and deleted (MB-F1..F4, F29)."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

import anyio
import msgspec

from trunkline.errors import ErrorCode, StorageError
from trunkline.gateway import block_file
from trunkline.gateway.conversations import Conversations
from trunkline.gateway.faults import refusal
from trunkline.gateway.ids import is_block_name
from trunkline.gateway.known_blocks import KnownBlocks, path_of
from trunkline.gateway.running import Turns
from trunkline.gateway.workspaces import Workspaces
from trunkline.messages.blocks import (
    ArchivedBlock,
    Block,
    BlockConfig,
    BlockList,
    CreateBlock,
    DeleteBlock,
    Pulse,
    PulseState,
)
from trunkline.messages.memory import (
    DeleteMemory,
    ListMemory,
    MemoryFile,
    MoveMemory,
    ReadManyMemory,
    WriteManyMemory,
)
from trunkline.seed import block_files
from trunkline.subjects import (
    MEMORY_DELETE,
    MEMORY_LIST,
    MEMORY_MOVE,
    MEMORY_READ_MANY,
    MEMORY_WRITE_MANY,
    PULSE_BUCKET,
)
from trunkline_bus import Bus, RemoteFault

NAME_RULE = "A block's name is 1 to 32 characters: small letters, digits and dashes, beginning with a letter or digit."
PRECEDENCE: tuple[PulseState, ...] = ("BUSY", "ERROR", "ACTIVE", "SLEEPING")
"""Of several monitors that serve a block, the first of these is what the block is doing."""

_ARCHIVE = re.compile(r"(?P<name>[a-z0-9][a-z0-9-]{0,31})_(?P<at>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{6}Z)")
_AT = "%Y-%m-%dT%H-%M-%S-%fZ"


class Blocks:
    """Raises Refusal with a fixed code, and BusError when memory does not answer."""

    def __init__(
        self,
        bus: Bus,
        turns: Turns,
        conversations: Conversations,
        workspaces: Workspaces,
        known: KnownBlocks,
        default: str,
    ) -> None:
        self._bus = bus
        self._turns = turns
        self._known = known
        self._conversations = conversations
        self._workspaces = workspaces
        self._changing = anyio.Lock()
        self.default = default

    async def create(self, request: CreateBlock, actor: str) -> Block:
        """Make a block: its choices and its identity, in one commit."""
        _check_name(request.name)
        async with self._changing:
            if await self._file(request.name) is not None:
                raise refusal(ErrorCode.CONFLICT, f"There is a block called {request.name!r} already.")
            await self._make(request, actor)
        return await self.show(request.name)

    async def ensure_default(self) -> None:
        """Make the default block if it is missing."""
        if await self._file(self.default) is None:
            async with self._changing:
                if await self._file(self.default) is None:
                    await self._make(CreateBlock(name=self.default), "gateway")

    async def accept_into(self, name: str) -> None:
        """Refuse unless the block takes messages: ``not_found``, or ``conflict`` when it is switched off."""
        file = await self._known.of(name) if is_block_name(name) else None
        if file is None and name == self.default:
            return await self.ensure_default()
        if file is None:
            raise refusal(ErrorCode.NOT_FOUND, f"There is no block called {name!r}.")
        if not _config(file).enabled:
            raise refusal(ErrorCode.CONFLICT, f"The block {name!r} is switched off.")

    async def show(self, name: str) -> Block:
        """One block."""
        file = await self._file(name) if is_block_name(name) else None
        if file is None:
            raise refusal(ErrorCode.NOT_FOUND, f"There is no block called {name!r}.")
        pulses = await self._pulses()
        return await self._block(file, pulses.get(name, Pulse()))

    async def listed(self, *, archived: bool = False) -> BlockList:
        """All blocks by name, with the archived ones if so wished."""
        names = [name for name in await self._names("blocks") if is_block_name(name)]
        files = await self._files(names)
        pulses = await self._pulses()
        blocks = [await self._block(file, pulses.get(_name_of(file), Pulse())) for file in files]
        return BlockList(
            blocks=tuple(sorted(blocks, key=lambda block: block.name)),
            archived=await self._archived() if archived else (),
        )

    async def archive(self, name: str, actor: str) -> None:
        """Put a block away as it is. Refused while a turn of it is under way."""
        async with self._changing:
            await self._check_idle(name)
            archive = f"{name}_{datetime.now(UTC).strftime(_AT)}"
            await self._move(f"blocks/{name}", f"archive/{archive}", actor, f"archive block {name}")
            try:
                await self._workspaces.put_away(name, archive)
            except StorageError:
                await self._move(f"archive/{archive}", f"blocks/{name}", actor, f"keep block {name}")
                raise

    async def restore(self, name: str, actor: str) -> Block:
        """Bring the newest archive of a name back, byte for byte."""
        _check_name(name)
        async with self._changing:
            archive = await self._newest_archive(name)
            if await self._file(name) is not None:
                raise refusal(ErrorCode.CONFLICT, f"There is a block called {name!r} already.")
            await self._move(f"archive/{archive}", f"blocks/{name}", actor, f"restore block {name}")
            try:
                await self._workspaces.bring_back(name, archive)
            except StorageError:
                await self._move(f"blocks/{name}", f"archive/{archive}", actor, f"keep {archive}")
                raise
        return await self.show(name)

    async def delete(self, request: DeleteBlock, actor: str) -> None:
        """Delete a block or its newest archive, with its workspace. Memory's history keeps what memory held."""
        async with self._changing:
            if request.archived:
                _check_name(request.name)
                archive = await self._newest_archive(request.name)
                await self._delete(f"archive/{archive}", actor, f"delete archived block {request.name}")
                await self._workspaces.delete_archived(archive)
            else:
                await self._check_idle(request.name)
                await self._delete(f"blocks/{request.name}", actor, f"delete block {request.name}")
                await self._workspaces.delete(request.name)

    async def _make(self, request: CreateBlock, actor: str) -> None:
        config, folder = request.config, f"blocks/{request.name}"
        own = block_files(request.name, config.monitor_name, config.monitor_emoji)
        files = {f"{folder}/block.toml": block_file.encode(config, datetime.now(UTC))}
        files |= {f"{folder}/{name}": text for name, text in own.items()}
        write = WriteManyMemory(files=files, actor=actor, reason=f"create block {request.name}")
        await self._bus.call(MEMORY_WRITE_MANY, write, timeout=10.0)

    async def _check_idle(self, name: str) -> None:
        if not is_block_name(name) or await self._file(name) is None:
            raise refusal(ErrorCode.NOT_FOUND, f"There is no block called {name!r}.")
        if any(request.block == name for request in await self._turns.waiting()):
            raise refusal(
                ErrorCode.CONFLICT, f"The block {name!r} is at work. Wait for its turns, or cancel them."
            )

    async def _block(self, file: MemoryFile, pulse: Pulse) -> Block:
        name = _name_of(file)
        try:
            config = block_file.decode(file.content)
        except block_file.BlockFileError:
            config, pulse = BlockConfig(), Pulse(status="ERROR", error=ErrorCode.INVALID_REQUEST)
        return Block(
            name=name,
            config=config,
            pulse=pulse,
            created_at=block_file.made_on(file.content) or file.modified_at,
            conversations=await self._conversations.count(name),
        )

    async def _pulses(self) -> dict[str, Pulse]:
        """What each block is doing, over all monitors that live."""
        beats = [entry.value for entry in await self._bus.kv(PULSE_BUCKET).entries() if entry.value]
        return {
            block: together(beat.pulse for beat in beats if beat.block == block)
            for block in {beat.block for beat in beats}
        }

    async def _archived(self) -> tuple[ArchivedBlock, ...]:
        found = [match for name in await self._names("archive") if (match := _ARCHIVE.fullmatch(name))]
        return tuple(
            ArchivedBlock(
                name=match["name"],
                archive=match[0],
                archived_at=datetime.strptime(match["at"], _AT).replace(tzinfo=UTC),
            )
            for match in found
        )

    async def _newest_archive(self, name: str) -> str:
        found = [one.archive for one in await self._archived() if one.name == name]
        if not found:
            raise refusal(ErrorCode.NOT_FOUND, f"There is no archived block called {name!r}.")
        return max(found)

    async def _names(self, folder: str) -> list[str]:
        try:
            listing = await self._bus.call(MEMORY_LIST, ListMemory(path=folder))
        except RemoteFault as fault:
            if fault.code == ErrorCode.NOT_FOUND:
                return []
            raise
        return [entry.path.rsplit("/", 1)[-1] for entry in listing.entries if entry.kind == "folder"]

    async def _file(self, name: str) -> MemoryFile | None:
        return next(iter(await self._files([name])), None)

    async def _files(self, names: Iterable[str]) -> tuple[MemoryFile, ...]:
        paths = tuple(map(path_of, names))
        return (await self._bus.call(MEMORY_READ_MANY, ReadManyMemory(paths=paths))).files if paths else ()

    async def _move(self, source: str, target: str, actor: str, reason: str) -> None:
        move = MoveMemory(source=source, target=target, actor=actor, reason=reason)
        await self._bus.call(MEMORY_MOVE, move, timeout=20.0)
        self._known.forget()

    async def _delete(self, path: str, actor: str, reason: str) -> None:
        await self._bus.call(MEMORY_DELETE, DeleteMemory(path=path, actor=actor, reason=reason), timeout=20.0)
        self._known.forget()


def together(pulses: Iterable[Pulse]) -> Pulse:
    """One pulse out of those of several monitors: the status that counts most, and the latest times."""
    ranked = sorted(pulses, key=lambda pulse: PRECEDENCE.index(pulse.status))
    times = [pulse.last_run for pulse in ranked if pulse.last_run]
    beats = [pulse.last_pulse for pulse in ranked if pulse.last_pulse]
    return msgspec.structs.replace(
        ranked[0], last_run=max(times, default=None), last_pulse=max(beats, default=None)
    )


def _check_name(name: str) -> None:
    if not is_block_name(name):
        raise refusal(ErrorCode.INVALID_REQUEST, NAME_RULE)


def _name_of(file: MemoryFile) -> str:
    return file.path.split("/")[-2]


def _config(file: MemoryFile) -> BlockConfig:
    """The choices in a file; one that cannot be read has none, so that people can still talk to the block."""
    try:
        return block_file.decode(file.content)
    except block_file.BlockFileError:
        return BlockConfig()
