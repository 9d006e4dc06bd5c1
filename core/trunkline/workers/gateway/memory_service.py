"""The memory service: the owner's requests to memory. Nobody else reaches memory through the gateway (ADR 79).

The memory worker does the work and checks every path. This service decides who may ask, names the actor, and gives the
memory worker's refusals the form of the gateway's.
"""

from collections.abc import Awaitable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.approvals.preview import diff_preview
from trunkline.contracts.memory.client import SELF
from trunkline.contracts.memory.files import (
    MEMORY_READ,
    MEMORY_WRITE_MANY,
    MemoryFile,
    ReadMemory,
    WriteManyMemory,
)
from trunkline.contracts.memory.operation import CALL_SECONDS, MemoryOperation
from trunkline.contracts.memory.path_rules import normalize_path
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import InvalidField, error_code, refusal
from trunkline.workers.gateway.sender import Sender
from trunkline_bus import Bus, Refusal, RemoteFault

Q = TypeVar("Q", bound=msgspec.Struct)
A = TypeVar("A")

INVALID_CODES = frozenset(
    {
        "bad_request",
        "invalid_fields",
        "invalid_policy",
        "invalid_scope",
        "invalid_type",
        "invalid_value",
        "missing_required_fields",
        "not_supported",
    }
)
"""Codes of memory for a request that can never succeed as it is."""


class MemoryService:
    """Reads and changes memory for the owner, with a token for all blocks.

    Methods raise Refusal: ``forbidden`` for anybody else, ``invalid_request`` with the reason for a path that memory
    does not allow, ``not_found``, and ``conflict`` with the reason for the owner. They raise BusError when memory does
    not answer.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def query(self, operation: MemoryOperation[Q, A], request: Q, sender: Sender) -> A:
        """Return what an operation answers that changes nothing. The actor of the request becomes the sender."""
        actor = sender.require_administrator("reads memory")
        return await _translated(
            self._bus.call(operation, _by(request, actor), timeout=CALL_SECONDS, repeatable=True)
        )

    async def change(self, operation: MemoryOperation[Q, A], request: Q, sender: Sender) -> A:
        """Make a change, and return the answer when it is committed. The actor of the request becomes the sender."""
        actor = sender.require_administrator("changes memory")
        return await _translated(self._bus.call(operation, _by(request, actor), timeout=CALL_SECONDS))

    async def write(self, path: str, content: str, expected: str | None, sender: Sender) -> str:
        """Write a whole file, and return the version. ``expected`` is the hash that the file must have, "" for none."""
        name = _normalized(path)
        request = WriteManyMemory(
            files={name: content}, actor=SELF, expected={} if expected is None else {name: expected}
        )
        return (await self.change(MEMORY_WRITE_MANY, request, sender)).version

    async def preview(self, path: str, content: str, sender: Sender) -> tuple[ApprovalDetail, str]:
        """Return what a write would change, and the hash of the present file, "" if there is none."""
        name, file = _normalized(path), None
        try:
            file = await self.query(MEMORY_READ, ReadMemory(path=name), sender)
        except Refusal as error:
            if error.code != ErrorCode.NOT_FOUND:
                raise
        return diff_preview(name, _text(file), content), file.hash if file is not None else ""


async def _translated(call: Awaitable[A]) -> A:
    try:
        return await call
    except RemoteFault as fault:
        raise _refusal(fault) from fault


def _refusal(fault: RemoteFault) -> Exception:
    """Return memory's refusal in the gateway's form. Only the owner sees these, so the reason stays."""
    if fault.code == "invalid_path":
        return InvalidField("path", fault.message)
    if fault.code in INVALID_CODES:
        return InvalidField((), fault.message)
    code = error_code(fault.code)
    return refusal(code, fault.message) if code in (ErrorCode.CONFLICT, ErrorCode.NOT_FOUND) else fault


def _by(request: Q, actor: str) -> Q:
    return replace(request, actor=actor) if "actor" in request.__struct_fields__ else request


def _normalized(path: str) -> str:
    try:
        return normalize_path(path)
    except Refusal as error:
        raise InvalidField("path", error.message) from error


def _text(file: MemoryFile | None) -> str | None:
    return None if file is None else file.content
