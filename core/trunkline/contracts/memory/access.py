"""CallerAccess: what of memory one caller may see and change. The checks and filters of the operations use it."""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

import msgspec

from trunkline.contracts.blocks.paths import BLOCKS_FOLDER
from trunkline.contracts.memory import paths
from trunkline.contracts.memory.chunk import ChunkMetadata
from trunkline.contracts.memory.learned_visibility import (
    Recipient,
    is_chunk_withheld,
    is_withheld,
    may_hold_learned,
)
from trunkline.contracts.memory.operation import MemoryOperation
from trunkline.contracts.memory.transport import Transport
from trunkline.errors import ToolError

Action = Literal["read", "write"]

AccessCheck = Callable[[str, Action, bool], Awaitable[None]]
"""Raises ToolError if a path of memory may not be read or written. With True it also raises if anything below the path
may not be.
"""

Q = TypeVar("Q", bound=msgspec.Struct)
A = TypeVar("A")


async def allow_all(path: str, action: Action, whole: bool) -> None:
    """Allow everything."""


class CallerAccess:
    """The access of one actor in one block, in the conversation ``conversation``, to the memory behind ``transport``.

    ``check_access`` decides about paths, which begin with ``/``. All other paths are relative to the memory root.
    ``recipient`` is who sees the replies: what was learned from another person or in another block is withheld. With
    None nothing is withheld, and the caller must decide what to show.
    """

    def __init__(
        self,
        transport: Transport,
        block: str,
        actor: str,
        *,
        conversation: str = "",
        check_access: AccessCheck = allow_all,
        recipient: Recipient | None = None,
    ) -> None:
        self.transport = transport
        self.block = block
        self.actor = actor
        self.conversation = conversation
        self.check_access = check_access
        self._recipient = recipient

    async def send(self, operation: MemoryOperation[Q, A], request: Q) -> A:
        """Send a further request for a decision. Neither the request nor the reply is checked."""
        return await self.transport.call(operation, request)

    async def is_visible(self, path: str) -> bool:
        """Report whether a path may be read."""
        if paths.is_private_to_another(path, self.actor):
            return False
        try:
            await self.check_access(f"/{path}", "read", False)
        except ToolError:
            return False
        return True

    async def is_unrestricted(self, action: Action) -> bool:
        """Report whether all of memory may be read or written, so that single files need no check."""
        try:
            await self.check_access("/", action, True)
        except ToolError:
            return False
        return True

    async def sees_all_chunks(self) -> bool:
        """Report whether the caller may see each chunk that memory returns, so that no reply needs a filter."""
        return self._recipient is None and await self.is_unrestricted("read")

    def check_private(self, path: str) -> None:
        """Raise ToolError if a path is private to another actor."""
        if paths.is_private_to_another(path, self.actor):
            raise ToolError(
                f"{self.path_in_block(path)} is private to another agent.", kind="permission_denied"
            )

    def check_writable(self, path: str) -> None:
        """Raise ToolError if a path is or contains a file that only the owner may change, so that no agent changes its
        own permissions, or if it is a path of chunks, which only the operations on chunks change.
        """
        self.check_private(path)
        parts = [part.casefold() for part in path.split("/") if part not in ("", ".")]
        holds_settings = not parts or (parts[0] in (BLOCKS_FOLDER, "archive") and len(parts) < 3)
        if paths.is_owner_only(path) or holds_settings:
            raise ToolError(
                f"{self.path_in_block(path)} contains the permissions of agents or workflows, so only the owner can "
                "change it. Nothing was changed.",
                kind="permission_denied",
            )
        if paths.is_chunk_path(path):
            raise ToolError(
                f"{self.path_in_block(path)} is kept as a chunk: use remember, link or forget. Nothing was changed.",
                kind="permission_denied",
            )

    def depends_on_content(self, path: str) -> bool:
        """Report whether the content of the file at a path decides whether it is withheld."""
        return self._recipient is not None and may_hold_learned(path)

    def withholds(self, path: str, content: str) -> bool:
        """Report whether a file is withheld because of what it holds."""
        return self._recipient is not None and is_withheld(path, content, self._recipient)

    def withholds_chunk(self, path: str, metadata: ChunkMetadata) -> bool:
        """Report whether a chunk is withheld."""
        return self._recipient is not None and is_chunk_withheld(path, metadata, self._recipient)

    def withheld(self, path: str) -> ToolError:
        """Return the error for a file that is withheld."""
        return ToolError(
            f"{self.path_in_block(path)} was learned of somebody else or in another block, and is shown only there.",
            kind="permission_denied",
        )

    def path_in_block(self, path: str) -> str:
        """Return the path as the block names it."""
        return paths.path_in_block(self.block, path)
