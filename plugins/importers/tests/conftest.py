"""Shared by the tests of importers: folders as other systems write them, and a memory that imports them."""

import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import trunkline
from trunkline.contracts.memory.import_preparation import prepare_import
from trunkline.contracts.memory.store import StoreContext
from trunkline.contracts.memory.transfer import ImportMemory, MemoryImport
from trunkline_git_store.store import GitMemoryStore
from trunkline_importers.plugin import trunkline_importers

Write = Callable[[str, object], Path]


class Place:
    """A memory to import into."""

    def __init__(self, store: GitMemoryStore, base: Path) -> None:
        self.store = store
        self.base = base

    async def bring(self, source: Path, **options: Any) -> MemoryImport:
        """Recognise a source and bring it in, as the command does."""
        with prepare_import(source, list(trunkline_importers()), self.base / "cache", **options) as archive:
            copy = self.base / "coming.tar"
            shutil.copyfile(archive, copy)
        request = ImportMemory(object="x", actor="owner", settings=True)
        return await self.store.import_archive(copy, request, lambda progress: None)

    async def text(self, path: str) -> str:
        return (await self.store.read(path)).content

    async def json(self, path: str) -> Any:
        return json.loads(await self.text(path))

    async def said(self, conversation: str) -> list[trunkline.Message]:
        found = await self.store.find_conversation(conversation)
        assert found is not None, conversation
        return list((await self.store.load_conversation(found.block, conversation, after=0)).messages)

    async def paths(self) -> list[str]:
        return [entry.path for entry in await self.store.list("", recursive=True) if entry.kind == "file"]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    store = GitMemoryStore()
    await store.open(StoreContext(tmp_path / "memory", tmp_path / "cache"))
    try:
        yield Place(store, tmp_path)
    finally:
        await store.aclose()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file of the other system's folder: text, bytes, JSON, or lines of JSON (a tuple)."""

    def one(path: str, content: object) -> Path:
        file = tmp_path / "theirs" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, tuple):
            content = "".join(json.dumps(line) + "\n" for line in content)
        elif isinstance(content, dict | list):
            content = json.dumps(content)
        file.write_bytes(content if isinstance(content, bytes) else str(content).encode())
        return tmp_path / "theirs"

    return one


@pytest.fixture
def tables(tmp_path: Path) -> Callable[..., Path]:
    """Makes a database of the other system's folder: statements, and rows by table."""

    def make(path: str, schema: str, **rows: list[tuple[Any, ...]]) -> Path:
        file = tmp_path / "theirs" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.executescript(schema)
            for table, values in rows.items():
                marks = ",".join("?" * len(values[0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
        return tmp_path / "theirs"

    return make
