"""The schemas of blocks, and of sharing them."""

from datetime import datetime
from typing import Any

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.auth.share_policy import ShareAction
from trunkline.contracts.blocks.messages import BlockConfig, BlockStatusName
from trunkline.workers.gateway.http.schemas.schema_base import In, Out


class ShareRequest(In, frozen=True, kw_only=True):
    """The action that a block is shared for. It includes those before it: read, chat, approve, operate."""

    action: ShareAction


class BlockShare(Out, frozen=True, kw_only=True):
    """A policy that shares a block. ``identity`` is its subject, which may also be ``*`` or ``type:NAME``; ``action``
    may also be ``*``. ``resource`` is ``block:NAME``, or a pattern that matches further blocks. ``is_conditional`` is
    true if the policy has conditions, such as hours of the day.
    """

    block: str
    identity: str
    action: str
    policy: str
    resource: str
    is_conditional: bool = False


class BlockShareList(Out, frozen=True, kw_only=True):
    """The policies that share a block. Denials are not among them; they win over all of these."""

    shared_with: tuple[BlockShare, ...]


class NewBlock(In, frozen=True, kw_only=True):
    """A block to create. With a ``template`` it begins with the template's settings and identity; ``config`` counts
    where both say something."""

    name: str
    config: BlockConfig = BlockConfig()
    template: str = ""


class BlockChanges(In, frozen=True, kw_only=True):
    """Settings of a block to change, as a JSON merge patch (RFC 7396) of its ``config``: null removes a
    setting, and settings that are not named stay."""

    config: dict[str, Any]


class StopRequest(In, frozen=True, kw_only=True):
    """The way to stop a block: its turns are cancelled, or with ``finish`` run to their end."""

    finish: bool = False


class ResetRequest(In, frozen=True, kw_only=True):
    """The extent of a reset: the block loses its conversations and everything that its agent wrote and
    learned; with ``hard`` also its documents, identity, sliders and workspace."""

    hard: bool = False


class BlockTemplateItem(Out, frozen=True, kw_only=True):
    """A template of blocks: what it is for, the settings of a new block, and the parts ``personality`` and ``roles`` of
    its ``monitor.md``. ``is_own`` is whether the file is in the home, not shipped. ``problem`` says why it cannot be
    used, "" if it can."""

    name: str
    summary: str
    config: BlockConfig
    personality: str
    roles: str
    is_own: bool
    problem: str


class BlockTemplateItems(Out, frozen=True, kw_only=True):
    """The templates of blocks, sorted by name."""

    templates: tuple[BlockTemplateItem, ...]


class BlockState(Out, frozen=True, kw_only=True):
    """A block.

    ``access`` is the largest of ``read``, ``chat``, ``approve``, ``operate`` and ``owner`` that the caller may do in
    it, by its token and by the policies; it includes those before it.

    ``last_run`` is when the last turn ran, ``last_pulse`` when a monitor last reported the status, and
    ``next_wake_up`` when a schedule is due next.

    ``problem`` describes a file that a person must repair; until then the block takes no messages, and ``config`` does
    not show the settings of that file.
    """

    name: str
    status: BlockStatusName
    config: BlockConfig
    created_at: datetime
    conversations: int
    access: TokenScope | None = None
    current_task: str | None = None
    last_run: datetime | None = None
    last_pulse: datetime | None = None
    next_wake_up: datetime | None = None
    error: str | None = None
    problem: str = ""


class ArchivedBlockItem(Out, frozen=True, kw_only=True):
    """An archived block."""

    name: str
    archive: str
    archived_at: datetime


class BlockStates(Out, frozen=True, kw_only=True):
    """The blocks."""

    blocks: tuple[BlockState, ...]
    archived: tuple[ArchivedBlockItem, ...] = ()
