"""Blocks: their configuration, and the requests that create, list, change, stop, reset, archive, restore and delete
them.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from trunkline.contracts.memory.chunks import Layer
from trunkline.contracts.policies.messages import PermissionTable
from trunkline_bus import Payload

Discovery = Literal["auto", "on", "off"]
BlockStatusName = Literal["SLEEPING", "ACTIVE", "BUSY", "ERROR"]


class MemoryPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The limits of what a block's agents may remember and read: the table ``[memory]`` of its ``block.toml``.

    ``write_layers``: the first one is written when nothing is said. The owner's own layer is shared with all blocks, so
    writing it takes ``allow_user_global_write`` besides. Chunks that nobody made or used for ``retention_days`` are
    archived; without a number they stay.
    """

    enabled: bool = True
    read_layers: tuple[Layer, ...] = ("project_agent", "project_global", "user_agent", "user_global")
    write_layers: tuple[Layer, ...] = ("project_global", "project_agent")
    allow_user_global_write: bool = False
    retention_days: Annotated[int, msgspec.Meta(ge=1)] | None = None


class BlockConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A block's own choices, in its ``block.toml``; every one can be left out.

    ``model`` is ``adapter/model`` or a model of the default adapter, ``vision_model`` the one that looks at pictures;
    ``tools`` limits the catalogue to these names.
    ``discovery`` is whether the model is shown all tools (``off``) or finds most of them when it needs them (``on``);
    ``auto`` goes by how many there are. ``always_send`` names those that it is shown all the same, ``*`` stands for any
    text; without it those whose authors advise it. What is not said here is as in the owner's ``preferences.toml``.
    """

    description: str = ""
    goals: tuple[str, ...] = ()
    model: str | None = None
    vision_model: str | None = None
    tools: tuple[str, ...] | None = None
    discovery: Discovery | None = None
    always_send: tuple[str, ...] | None = None
    monitor_name: str | None = None
    monitor_emoji: str | None = None
    enabled: bool = True
    memory: MemoryPolicy = MemoryPolicy()
    permissions: PermissionTable = PermissionTable()


class BlockStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The status of a block. ``error`` is a code, never raw text."""

    status: BlockStatusName = "SLEEPING"
    last_run: datetime | None = None
    last_pulse: datetime | None = None
    current_task: str | None = None
    error: str | None = None


class BlockStatusHeartbeat(Payload, frozen=True, kw_only=True, tag="pulse.beat.v1"):
    """One monitor's view of a block, refreshed while it serves it and gone soon after it dies."""

    block: str
    monitor: str
    pulse: BlockStatus


class Block(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A block as it stands. ``problem`` says what is wrong with its ``block.toml``, in which case it takes no messages
    and ``config`` is not what the file says; "" when nothing is."""

    name: str
    config: BlockConfig
    problem: str = ""
    pulse: BlockStatus = BlockStatus()
    created_at: datetime
    conversations: int = 0


class CreateBlock(Payload, frozen=True, kw_only=True, tag="blocks.create.v1"):
    """Create a block. Its name keeps the rule for block names (``^[a-z0-9][a-z0-9-]{0,31}$``) and is free."""

    name: str
    config: BlockConfig = BlockConfig()


class ListBlocks(Payload, frozen=True, kw_only=True, tag="blocks.list.v1"):
    """Ask for all blocks, with the archived ones if so wished."""

    archived: bool = False


class ArchivedBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A block that was put away; ``archive`` is what ``restore`` takes besides its name."""

    name: str
    archive: str
    archived_at: datetime


class BlockList(Payload, frozen=True, kw_only=True, tag="blocks.listed.v1"):
    """The blocks by name."""

    blocks: tuple[Block, ...] = ()
    archived: tuple[ArchivedBlock, ...] = ()


class ShowBlock(Payload, frozen=True, kw_only=True, tag="blocks.show.v1"):
    """Ask for one block."""

    name: str


class BlockView(Payload, frozen=True, kw_only=True, tag="blocks.view.v1"):
    """One block."""

    block: Block


class ChangeBlock(Payload, frozen=True, kw_only=True, tag="blocks.change.v1"):
    """Change choices of a block: dotted keys of its ``block.toml`` (``permissions.approvals``) and their values; None
    takes a key out. Comments and order of the file stay. All are changed or none."""

    name: str
    changes: dict[str, Any]


class StopBlock(Payload, frozen=True, kw_only=True, tag="blocks.stop.v1"):
    """Switch a block off, and cancel its turns; with ``finish`` those that were accepted go on to their end."""

    name: str
    finish: bool = False


class BlockStopped(Payload, frozen=True, kw_only=True, tag="blocks.stopped.v1"):
    """The block as it stands now, the turns that were cancelled, and the background tasks that were ended."""

    block: Block
    cancelled: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()


class ResetBlock(Payload, frozen=True, kw_only=True, tag="blocks.reset.v1"):
    """Cancel a block's turns, then have it forget: its conversations and all that its agent wrote or learned. With
    ``hard`` its documents, identity, sliders and workspace are lost too. Its choices stay; memory's history keeps the
    rest, but for the workspace."""

    name: str
    hard: bool = False


class ArchiveBlock(Payload, frozen=True, kw_only=True, tag="blocks.archive.v1"):
    """Cancel a block's turns and put it away as it is."""

    name: str


class RestoreBlock(Payload, frozen=True, kw_only=True, tag="blocks.restore.v1"):
    """Bring an archived block back, byte for byte; its name must be free."""

    name: str


class DeleteBlock(Payload, frozen=True, kw_only=True, tag="blocks.delete.v1"):
    """Cancel a block's turns and delete it, or with ``archived`` delete the newest archive of that name. Memory's
    history keeps what it held."""

    name: str
    archived: bool = False
