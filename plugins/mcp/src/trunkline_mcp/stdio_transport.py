"""MCP over the pipes of a program in the sandbox: a line, a message. The SDK's own stdio client starts programs itself.

Whatever the program writes is taken in bounded pieces: a line may come in any number of chunks, what is no message is
passed over, and what it says on its standard error goes to the log, so that it never waits for somebody to read it.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Protocol

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

log = logging.getLogger(__name__)

LONGEST_LINE = 32 * 1024 * 1024
"""Bytes of one message; a program that sends more is taken to be out of its mind."""

LOGGED_LINES = 200
"""Lines of standard error that are logged a connection; after that only every thousandth is."""

STDERR_LINES = 20
"""Lines of standard error that are kept to say why a program ended."""

SHUTDOWN_SECONDS = 2.0
"""Seconds that a program has to end once its standard input is closed; then it is killed."""

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]


class PipedProcess(Protocol):
    """A program as this module needs it; ``trunkline.api.sandbox.SandboxProcess`` is one."""

    stdin: ByteSendStream
    stdout: ByteReceiveStream
    stderr: ByteReceiveStream

    async def wait(self) -> int | None: ...


class StdioTransport:
    """The transport of one program. ``ended`` is set when it has closed its output; ``stderr`` gets its last lines."""

    def __init__(self, process: PipedProcess, name: str, stderr: list[str]) -> None:
        self.ended = anyio.Event()
        self._silent = anyio.Event()
        self._said = stderr
        self._process = process
        self._name = name
        self._logged = 0

    @asynccontextmanager
    async def streams(
        self,
    ) -> AsyncIterator[
        tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
    ]:
        """Yield the streams that the SDK's client reads from and writes to. They close with the context."""
        incoming, reader = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        writer, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read_stderr)
            tasks.start_soon(self._read, incoming)
            tasks.start_soon(self._write, outgoing)
            try:
                yield reader, writer
            finally:
                with anyio.CancelScope(shield=True):
                    await self._shut_down()
                for stream in (reader, writer, incoming, outgoing):
                    stream.close()
                tasks.cancel_scope.cancel()

    async def _shut_down(self) -> None:
        """Say good-bye as the protocol has it: no more input, and some time to end. Who began the program kills it."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            await self._process.stdin.aclose()
        with anyio.move_on_after(SHUTDOWN_SECONDS):
            await self._process.wait()
            await self._silent.wait()

    async def _read(self, incoming: Incoming) -> None:
        try:
            async with incoming:
                async for line in read_lines(self._process.stdout, LONGEST_LINE):
                    await self._deliver(incoming, line)
        except LineTooLongError:
            log.error("the MCP server %s sent a message of more than %d bytes", self._name, LONGEST_LINE)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            log.debug("the output of the MCP server %s broke off", self._name, exc_info=True)
        finally:
            self.ended.set()

    async def _deliver(self, incoming: Incoming, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._log_stderr(f"(not a protocol message) {line[:200].decode(errors='replace')}")
        else:
            await incoming.send(SessionMessage(message))

    async def _write(self, outgoing: Outgoing) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            async for one in outgoing:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                await self._process.stdin.send(text.encode() + b"\n")

    async def _read_stderr(self) -> None:
        try:
            async for line in read_lines(self._process.stderr, 4096, cut=True):
                self._log_stderr(line.decode(errors="replace"))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            log.debug("the standard error of the MCP server %s broke off", self._name, exc_info=True)
        finally:
            self._silent.set()

    def _log_stderr(self, line: str) -> None:
        self._said[:] = [*self._said[1 - STDERR_LINES :], line[:500]]
        self._logged += 1
        if self._logged <= LOGGED_LINES or self._logged % 1000 == 0:
            log.info("MCP server %s says: %s", self._name, line[:500])
        if self._logged == LOGGED_LINES:
            log.warning("the MCP server %s writes so much that only some of it is logged", self._name)


class LineTooLongError(Exception):
    """A line is longer than it may be."""


async def read_lines(stream: ByteReceiveStream, longest: int, *, cut: bool = False) -> AsyncIterator[bytes]:
    """The lines of a stream, however its chunks fall, without their ends; the last one too that has no end.

    A line longer than ``longest`` is given without what is too much when it may be ``cut``.

    Raises:
        LineTooLongError: a line is too long and may not be cut.
    """
    kept = bytearray()
    async for chunk in stream:
        begin = 0
        while (end := chunk.find(b"\n", begin)) >= 0:
            kept += chunk[begin:end]
            yield _bounded(kept, longest, cut=cut)
            kept, begin = bytearray(), end + 1
        kept += chunk[begin:]
        if len(kept) > longest:
            kept = bytearray(_bounded(kept, longest, cut=cut))
    if kept:
        yield bytes(kept)


def _bounded(line: bytearray, longest: int, *, cut: bool) -> bytes:
    if len(line) > longest and not cut:
        raise LineTooLongError
    return bytes(line[:longest])
