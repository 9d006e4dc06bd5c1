"""AuthorizingTransport: checks which parts of memory a tool's request may reach, and filters the replies.

The checks use only the request, so they hold for a tool in this process and for an isolated plugin, whatever that
plugin writes into its requests. What is checked and filtered is declared in the operation's row: a request that a tool
may not make is refused before it is sent.
"""

from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from trunkline.contracts.memory.access import AccessCheck, Action, CallerAccess
from trunkline.contracts.memory.operation import MemoryOperation
from trunkline.contracts.memory.transfer import MemoryImport
from trunkline.errors import ToolError

Q = TypeVar("Q", bound=msgspec.Struct)
A = TypeVar("A")


class AuthorizingTransport:
    """Sends the permitted requests of one caller. Every request gets the caller's block and actor, whatever it
    contained.
    """

    def __init__(self, access: CallerAccess) -> None:
        self._access = access

    @property
    def check_access(self) -> AccessCheck:
        """The check that decides about paths."""
        return self._access.check_access

    async def call(self, operation: MemoryOperation[Q, A], request: Q) -> A:
        """Check a request, send it, and filter the reply. Raises ToolError ``permission_denied``."""
        if operation.extent is None:
            raise ToolError(
                f"{operation.name} is no operation that a tool may call.", kind="permission_denied"
            )
        permitted = self._identified(operation, request)
        if operation.check is not None:
            permitted = await operation.check(self._access, permitted)
        await self._check_path(operation, permitted)
        reply = await self._access.send(operation, permitted)
        return reply if operation.filter is None else await operation.filter(self._access, permitted, reply)

    async def export(self, target: Path) -> int:
        """Export memory. Only for an actor that may read everything."""
        await self.check_access("/", "read", True)
        return await self._access.transport.export(target)

    async def import_archive(self, source: Path, *, kind: str | None, dry_run: bool) -> MemoryImport:
        """Import an archive. Only for an actor that may write everything."""
        await self.check_access("/", "write", True)
        return await self._access.transport.import_archive(source, kind=kind, dry_run=dry_run)

    def _identified(self, operation: MemoryOperation[Q, A], request: Q) -> Q:
        """Return the request with this block and this actor.

        The reason of a change becomes the message of its commit, which only memory writes, so it is removed unless the
        operation keeps it.
        """
        forced = {"actor": self._access.actor, "block": self._access.block}
        if not operation.keeps_reason:
            forced["reason"] = ""
        known = {name: value for name, value in forced.items() if name in request.__struct_fields__}
        return replace(request, **known)

    async def _check_path(self, operation: MemoryOperation[Q, A], request: Q) -> None:
        """Raise ToolError if the caller may not reach the path of the request."""
        access = self._access
        path: str = getattr(request, "path", "")  # only a request with the scope ``reply`` may have none
        if operation.extent == "reply":
            access.check_private(path)
            return
        if operation.changes:
            access.check_writable(path)
        else:
            access.check_private(path)
            if operation.filter is None and access.depends_on_content(path):
                raise access.withheld(path)
        action: Action = "write" if operation.changes else "read"
        await access.check_access(f"/{path}", action, operation.extent == "tree")
