"""Lines of standard input with several readers at once."""

import os

import anyio
import pytest

from trunkline_terminal.line_reader import LineReader

pytestmark = pytest.mark.anyio


async def test_the_last_of_two_readers_gets_the_next_line() -> None:
    """A question that appears while a message could be typed gets the next line, and the message the one after it."""
    read, write = os.pipe()
    lines = LineReader(read)
    got: dict[str, str | None] = {}

    async def take(name: str) -> None:
        got[name] = await lines.read_line()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take, "message")
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(take, "question")
            await anyio.wait_all_tasks_blocked()
            os.write(write, b"y\n")
            while "question" not in got:  # noqa: ASYNC110 - a task of this test
                await anyio.sleep(0.01)
            assert got == {"question": "y"}
            os.write(write, b"hello\n")
    assert got == {"question": "y", "message": "hello"}
    os.close(read)
    os.close(write)


async def test_a_cancelled_question_loses_no_line() -> None:
    """A question that was decided elsewhere leaves the next line to the message."""
    read, write = os.pipe()
    lines = LineReader(read)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            scope = anyio.CancelScope()

            async def ask() -> None:
                with scope:
                    await lines.read_line()

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            os.write(write, b"")
            scope.cancel()
            await anyio.wait_all_tasks_blocked()
            os.write(write, b"hello\n")
            assert await lines.read_line() == "hello"
    os.close(read)
    os.close(write)
