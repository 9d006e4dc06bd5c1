"""Shared by the memory tests: an open store on a separate root, and plain git to read it from outside."""

import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from trunkline.contracts.memory.store import Change, StoreContext
from trunkline_git_store.store import GitMemoryStore

Git = Callable[..., str]
Write = Callable[..., Awaitable[str]]
Opened = Callable[..., AbstractAsyncContextManager[GitMemoryStore]]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Opens a store on ``memory`` with its cache in ``cache``, below the test's folder or another."""

    @asynccontextmanager
    async def open_store(base: Path = tmp_path, **context: Any) -> AsyncIterator[GitMemoryStore]:
        store = GitMemoryStore()
        await store.open(StoreContext(base / "memory", base / "cache", **context))
        try:
            yield store
        finally:
            await store.aclose()

    return open_store


@pytest.fixture
async def store(opened: Opened) -> AsyncIterator[GitMemoryStore]:
    async with opened() as found:
        yield found


@pytest.fixture
def write(store: GitMemoryStore) -> Write:
    """Writes one file to ``store``; returns the version."""

    async def write_one(path: str, text: str, actor: str = "agent") -> str:
        return await store.change(Change({path: text.encode()}, actor=actor, reason=""))

    return write_one


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
def git(root: Path) -> Git:
    """Run the stock git in the root and return its output; fails when git does."""

    def run(*arguments: str, at: Path = root) -> str:
        command = ["git", "-c", "safe.directory=*", "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        done = subprocess.run(
            [*command, "-C", str(at), *arguments], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
