"""Run a program and stream its output, for adapters whose model is a program. Do not use it for programs that a model
requests; those run in a sandbox (``trunkline.Sandbox``).
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from tempfile import TemporaryFile

import anyio
import anyio.abc
from anyio.streams.text import TextReceiveStream

from trunkline.errors import ErrorCode, ModelError


@asynccontextmanager
async def program(argv: Sequence[str], text: str) -> AsyncIterator[AsyncIterator[str]]:
    """Run a program that reads ``text``, and yield an iterator over its output as it arrives.

    Leaving the block ends the program, even before its output ends. Its standard error is that of this process.
    ``argv`` is never passed to a shell.

    Raises:
        ModelError: ``unavailable`` if the program cannot be started; ``interrupted``, at the end of the output, if it
            exits with a status other than 0.
    """
    with (
        TemporaryFile() as question
    ):  # with a pipe both sides would block if the program prints before it reads
        question.write(text.encode())
        question.seek(0)
        try:
            process = await anyio.open_process(argv, stdin=question, stderr=None)
        except (OSError, IndexError) as error:
            raise ModelError(ErrorCode.PROVIDER_ERROR, "unavailable", f"{argv}: {error}") from error
        try:
            yield _printed(process)
        finally:
            await _end(process)


async def _printed(process: anyio.abc.Process) -> AsyncIterator[str]:
    assert process.stdout is not None
    async for piece in TextReceiveStream(process.stdout, errors="replace"):
        yield piece
    if status := await process.wait():
        raise ModelError(ErrorCode.PROVIDER_ERROR, "interrupted", f"it exited with status {status}")


async def _end(process: anyio.abc.Process) -> None:
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            process.kill()
        await process.aclose()
