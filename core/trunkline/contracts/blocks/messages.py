"""Blocks: their configuration, and the requests that create, list, change, stop, reset, archive, restore and delete
them.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from trunkline.contracts.blocks.colour import check_colour
from trunkline.contracts.blocks.model_choice import RENAMED_KEYS, ModelTable, check_models
from trunkline.contracts.memory.chunk import Layer
from trunkline.contracts.policies.messages import PermissionTable
from trunkline_bus import Payload

Discovery = Literal["auto", "on", "off"]
BlockStatusName = Literal["SLEEPING", "ACTIVE", "BUSY", "ERROR"]


class MemoryPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The memory settings of a block's agent: the table ``[memory]`` of its ``block.toml``.

    ``write_layers`` are the layers that the agent may write; the first one is the default. Writing the layer
    ``user_global``, which all blocks share, also requires ``allow_user_global_write``. Chunks that were neither
    created nor used for ``retention_days`` are archived; None archives none.
    """

    enabled: bool = True
    read_layers: tuple[Layer, ...] = ("project_agent", "project_global", "user_agent", "user_global")
    write_layers: tuple[Layer, ...] = ("project_global", "project_agent")
    allow_user_global_write: bool = False
    retention_days: Annotated[int, msgspec.Meta(ge=1)] | None = None


class BlockConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The settings of a block, from its ``block.toml``. Every setting is optional.

    ``description`` and ``goals`` state the purpose of the block for the model. ``model`` is ``adapter/model`` or a
    model of the default adapter; ``models`` names models for other purposes than answers to people, such as ``vision``
    and ``summary`` (``model_choice``). ``tools`` limits the catalogue to these names. ``discovery`` decides whether the
    model receives all tools (``off``) or loads most of them on demand (``on``); ``auto`` decides by their number.
    ``always_send`` names the tools that the model receives in any case, where ``*`` matches any text. A ``model``, a
    purpose of ``models``, ``discovery`` or ``always_send`` that is not set is taken from the owner's
    ``preferences.toml``. If neither file sets ``always_send``, the model receives the tools whose authors advise it.

    ``monitor_name`` and ``monitor_emoji`` are the name and the emoji of the agent in a new block; they are written to
    memory. ``monitor_colour`` is the colour by which people tell the block apart (``colour``). A block that is not
    ``enabled`` accepts no messages.
    """

    renamed: ClassVar[Mapping[str, tuple[str, str]]] = RENAMED_KEYS

    description: str = ""
    goals: tuple[str, ...] = ()
    model: str | None = None
    models: ModelTable = {}
    tools: tuple[str, ...] | None = None
    discovery: Discovery | None = None
    always_send: tuple[str, ...] | None = None
    monitor_name: str | None = None
    monitor_emoji: str | None = None
    monitor_colour: str | None = None
    enabled: bool = True
    memory: MemoryPolicy = MemoryPolicy()
    permissions: PermissionTable = PermissionTable()

    def __post_init__(self) -> None:
        check_models(self.models)
        check_colour(self.monitor_colour)


class BlockStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The status of a block. ``last_run`` is the time of the last turn, ``last_pulse`` the time of this status,
    ``current_task`` a running turn, ``next_wake_up`` the next due time of the block's schedules. ``error`` is an error
    code, never raw text.
    """

    status: BlockStatusName = "SLEEPING"
    last_run: datetime | None = None
    last_pulse: datetime | None = None
    next_wake_up: datetime | None = None
    current_task: str | None = None
    error: str | None = None


class BlockStatusHeartbeat(Payload, frozen=True, kw_only=True, tag="pulse.beat.v1"):
    """The status of a block as one monitor reports it. The monitor refreshes the entry while it serves the block; the
    entry expires soon after the monitor dies.
    """

    block: str
    monitor: str
    pulse: BlockStatus


class Block(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The current state of a block. ``problem`` says what is wrong with its ``block.toml``, "" if the file is valid.
    A block with a problem accepts no messages, and ``config`` does not reflect the file. ``conversations`` is the
    number of its conversations.
    """

    name: str
    config: BlockConfig
    problem: str = ""
    pulse: BlockStatus = BlockStatus()
    created_at: datetime
    conversations: int = 0


class CreateBlock(Payload, frozen=True, kw_only=True, tag="blocks.create.v1"):
    """Create a block. The name must match ``^[a-z0-9][a-z0-9-]{0,31}$`` and must not be in use. With a ``template`` the
    block begins with the template's settings and identity; ``config`` counts where both say something.
    """

    name: str
    config: BlockConfig = BlockConfig()
    template: str = ""


class ListBlocks(Payload, frozen=True, kw_only=True, tag="blocks.list.v1"):
    """Ask for all blocks; ``archived`` adds the archived ones."""

    archived: bool = False


class ArchivedBlock(msgspec.Struct, frozen=True, kw_only=True):
    """An archived block. ``archive`` is the name of its folder below ``archive/`` in memory."""

    name: str
    archive: str
    archived_at: datetime


class BlockList(Payload, frozen=True, kw_only=True, tag="blocks.listed.v1"):
    """The blocks, sorted by name."""

    blocks: tuple[Block, ...] = ()
    archived: tuple[ArchivedBlock, ...] = ()


class ShowBlock(Payload, frozen=True, kw_only=True, tag="blocks.show.v1"):
    """Ask for one block."""

    name: str


class BlockView(Payload, frozen=True, kw_only=True, tag="blocks.view.v1"):
    """The block that was requested or changed."""

    block: Block


class ChangeBlock(Payload, frozen=True, kw_only=True, tag="blocks.change.v1"):
    """Change settings of a block. ``changes`` maps dotted keys of its ``block.toml`` (``permissions.approvals``) to
    their values; None removes a key. Comments and order of the file are preserved. Either all changes are made or
    none.
    """

    name: str
    changes: dict[str, Any]


class StopBlock(Payload, frozen=True, kw_only=True, tag="blocks.stop.v1"):
    """Switch a block off and cancel its turns; ``finish`` lets the turns already accepted run to their end."""

    name: str
    finish: bool = False


class BlockStopped(Payload, frozen=True, kw_only=True, tag="blocks.stopped.v1"):
    """The state of the stopped block, the turns that were cancelled, and the background tasks that were ended."""

    block: Block
    cancelled: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()


class ResetBlock(Payload, frozen=True, kw_only=True, tag="blocks.reset.v1"):
    """Cancel a block's turns, then delete its conversations and everything that its agent wrote or learned. ``hard``
    also deletes its documents, identity, sliders and workspace. Its settings stay. The history of memory keeps
    everything deleted except the workspace.
    """

    name: str
    hard: bool = False


class ArchiveBlock(Payload, frozen=True, kw_only=True, tag="blocks.archive.v1"):
    """Cancel a block's turns and archive the block unchanged."""

    name: str


class RestoreBlock(Payload, frozen=True, kw_only=True, tag="blocks.restore.v1"):
    """Restore an archived block, byte for byte. Its name must not be in use."""

    name: str


class DeleteBlock(Payload, frozen=True, kw_only=True, tag="blocks.delete.v1"):
    """Cancel a block's turns and delete the block; ``archived`` deletes the newest archive of that name instead. The
    history of memory keeps the deleted content.
    """

    name: str
    archived: bool = False
