"""Reads files in separate processes. A reader that hangs, crashes or uses too much memory only loses its file."""

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import BinaryIO

import anyio
import anyio.to_thread

from trunkline.config.settings import DocumentsSettings
from trunkline.contracts.documents.reader import Document, Reader
from trunkline.documents import reader_protocol
from trunkline.errors import UnreadableDocument

GIVEN = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR", "TESSDATA_PREFIX")
"""The environment variables that the process inherits. None of them holds a secret."""

STARTING_SECONDS = 60.0
ENDING_SECONDS = 1.0

PROCESSES = min(4, os.cpu_count() or 1)
"""The maximum number of files that are read at the same time."""


class ReaderProcess:
    """A process that runs readers. Only one thread at a time may call ``read``; any thread may call ``kill``."""

    def __init__(self, bounds: DocumentsSettings) -> None:
        self._bounds = bounds
        ours, theirs = socket.socketpair()
        life, self._life = os.pipe()
        command = [sys.executable, "-P", "-m", "trunkline.documents.reader_main"]
        numbers = (theirs.fileno(), life, bounds.read_memory_mb, int(bounds.read_timeout) + 1)
        try:
            self._process = subprocess.Popen(
                [*command, *map(str, numbers)],
                pass_fds=(theirs.fileno(), life),
                env={name: os.environ[name] for name in GIVEN if name in os.environ}
                | {"OMP_THREAD_LIMIT": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            os.close(self._life)
            raise
        finally:
            theirs.close()
            os.close(life)
        self._connection = ours
        self._ending = threading.Lock()
        self._started = False
        self.usable = True

    def read(self, reader: Reader, file: BinaryIO, name: str) -> Document:
        """Read a file in the process. Raises UnreadableDocument; ``usable`` then says whether the process can read
        another file.
        """
        try:
            self._begin()
            deadline = time.monotonic() + self._bounds.read_timeout
            reader_protocol.send_message(self._connection, _job(reader, name), file.fileno())
            answer = reader_protocol.receive_reply(self._connection, deadline)
        except TimeoutError:
            self.kill()
            raise UnreadableDocument(f"reading it took longer than {self._bounds.read_timeout:g} s") from None
        except (EOFError, OSError):
            want = f"or needs more than {self._bounds.read_memory_mb} MB of memory"
            raise UnreadableDocument(f"it crashes its reader, {want} ({self._end()})") from None
        if answer.spent:
            self.kill()
        if isinstance(answer, reader_protocol.ReadFailure):
            raise UnreadableDocument(answer.reason)
        return answer.document

    def _begin(self) -> None:
        if not self._started:
            reader_protocol.wait_ready(self._connection, time.monotonic() + STARTING_SECONDS)
            self._started = True

    def kill(self) -> None:
        """Kill the process and all processes that it started.

        The process id stays valid until the process has been waited for; after that no signal is sent.
        """
        with self._ending:
            if not self.usable:
                return
            self.usable = False
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._connection.close()
            os.close(self._life)

    def _end(self) -> str:
        """Wait for the process to end, kill it if it does not, and return the signal or status with which it ended."""
        deadline = time.monotonic() + ENDING_SECONDS
        while self.usable and not self._ended() and time.monotonic() < deadline:
            time.sleep(0.005)
        self.kill()
        status = self._process.returncode
        return signal.Signals(-status).name if status < 0 else f"status {status}"

    def _ended(self) -> bool:
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


class ReaderPool:
    """Reads files with processes that are started when needed, and used again. Made by ``reader_pool``."""

    def __init__(self, bounds: DocumentsSettings) -> None:
        self._bounds = bounds
        self._limiter = anyio.CapacityLimiter(PROCESSES)
        self._idle: list[ReaderProcess] = []

    async def read(self, reader: Reader, file: BinaryIO, name: str) -> Document:
        """Read an open file. Cancelling the call kills the process. Raises UnreadableDocument."""
        if reason := reader.unavailable():
            raise UnreadableDocument(reason)
        async with self._limiter:
            process = self._idle.pop() if self._idle else await anyio.to_thread.run_sync(self._start)
            done = False
            try:
                document = await anyio.to_thread.run_sync(
                    process.read, reader, file, name, abandon_on_cancel=True
                )
                done = True
                return document
            except UnreadableDocument:
                done = True
                raise
            finally:
                if done and process.usable:
                    self._idle.append(process)
                elif not done:
                    process.kill()

    def stop_idle(self) -> None:
        """Kill the idle processes if no process is working. They use memory, and starting one takes a fifth of a
        second.
        """
        if self._limiter.borrowed_tokens == 0:
            self.close()

    def close(self) -> None:
        """Kill the idle processes."""
        while self._idle:
            self._idle.pop().kill()

    def _start(self) -> ReaderProcess:
        return ReaderProcess(self._bounds)


@asynccontextmanager
async def reader_pool(bounds: DocumentsSettings) -> AsyncIterator[ReaderPool]:
    """Yield a pool of reader processes, which end with the block."""
    pool = ReaderPool(bounds)
    try:
        yield pool
    finally:
        pool.close()


def _job(reader: Reader, name: str) -> reader_protocol.ReadJob:
    module = type(reader).__module__
    try:
        data = pickle.dumps(reader)
    except Exception as error:  # pickle raises any exception that the object raises
        raise UnreadableDocument(
            f"the reader {reader.name} cannot travel to its process ({error})"
        ) from error
    return reader_protocol.ReadJob(data, module, str(getattr(sys.modules.get(module), "__file__", "")), name)
