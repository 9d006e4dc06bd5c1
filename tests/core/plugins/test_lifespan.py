"""Lifespans of plugins: their context, and the refusal of the old form."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

import trunkline
from trunkline.plugins import Plugins
from trunkline.testing.platform import platform

OLD_FORM = """
from contextlib import asynccontextmanager
import trunkline

@asynccontextmanager
async def life(worker, bus):
    yield

@trunkline.hookimpl
def trunkline_lifespan(worker):
    return [life]
"""


class NoteWriter:
    """Writes a note of the block ``main`` as soon as memory answers, and reads it back when it leaves."""

    def __init__(self) -> None:
        self.written = anyio.Event()
        self.contexts: list[trunkline.LifespanContext] = []

    @trunkline.hookimpl
    def trunkline_lifespan(self, worker: str) -> list[trunkline.Lifespan]:
        return [self._write] if worker == "monitor" else []

    @asynccontextmanager
    async def _write(self, context: trunkline.LifespanContext) -> AsyncIterator[None]:
        self.contexts.append(context)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._try_to_write, context.memory("main"))
            yield
            tasks.cancel_scope.cancel()

    async def _try_to_write(self, memory: trunkline.Memory) -> None:
        while True:
            try:
                await memory.write("note.md", "a note", expected="")
                return self.written.set()
            except trunkline.ToolError as error:
                assert error.kind == "unavailable"
                await anyio.sleep(0.05)


@pytest.mark.anyio
async def test_a_lifespan_has_the_memory_of_a_block(tmp_path: Path) -> None:
    """``context.memory(block)`` writes to the block's folder, and history names the plugin."""
    plugin = NoteWriter()
    async with platform(tmp_path / "home", plugins=[plugin]) as running:
        with anyio.fail_after(60):
            await plugin.written.wait()
        [context] = plugin.contexts
        assert (context.worker, bool(context.plugin)) == ("monitor", True)
        memory = context.memory("main")
        assert (await memory.read("note.md")).content == "a note"
        assert [change.author for change in await memory.history("note.md")] == [context.plugin]
        assert (running.home.memory / "blocks/main/note.md").read_text() == "a note"


def test_a_lifespan_of_the_old_form_is_refused_with_the_new_one(
    load: Callable[[], Plugins], sources: Path
) -> None:
    """A lifespan with ``worker, bus`` would fail with a TypeError at the worker's start; it is refused at loading."""
    (sources / "old.py").write_text(OLD_FORM)
    plugins = load()
    assert "file:old" not in [owned.owner for owned in plugins.lifespans("monitor")]
    assert "must take one argument, a trunkline.LifespanContext" in str(plugins.report.troubles)
