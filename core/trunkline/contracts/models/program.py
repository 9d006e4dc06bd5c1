"""Running a program for what it prints: for adapters whose model is a program. Not for what a model asks to be run;
that goes into a sandbox (``trunkline.Sandbox``)."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from tempfile import TemporaryFile

import anyio
import anyio.abc
from anyio.streams.text import TextReceiveStream

from trunkline.errors import ErrorCode, ModelError


@asynccontextmanager
async def program(argv: Sequence[str], text: str) -> AsyncIterator[AsyncIterator[str]]:
    """Run a program that reads ``text``; gives what it prints, piece by piece, as it prints it.

    Leaving the block ends the program, also in the middle. Its errors stay where this process's go. ``argv`` is
    never given to a shell.

    Raises:
        ModelError: ``unavailable`` when it cannot be started; ``interrupted``, at the end of what it prints, when it
            leaves with another status than 0.
    """
    with TemporaryFile() as question:  # a pipe would block both when the program prints before it reads
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
        raise ModelError(ErrorCode.PROVIDER_ERROR, "interrupted", f"it left with the status {status}")


async def _end(process: anyio.abc.Process) -> None:
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            process.kill()
        await process.aclose()
