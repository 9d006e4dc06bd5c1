"""Memory survives SIGKILL at any moment: acknowledged changes are there, others are complete or absent.

The writer writes, edits, moves, deletes and reverts, appends to a conversation, and packs meanwhile.
"""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from trunkline.contracts.memory.search import SearchMemory
from trunkline_bus import Refusal
from trunkline_git_store.store import GitMemoryStore

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

Git = Callable[..., str]
Opened = Callable[..., AbstractAsyncContextManager[GitMemoryStore]]

WRITER = textwrap.dedent(
    '''
    """Writes without end and says what was acknowledged; kills itself at a step when told to."""
    import json, os, signal, sys
    from contextlib import suppress
    from pathlib import Path

    import anyio

    from trunkline.contracts.memory.store import Change, StoreContext
    from trunkline_git_store.checkout import Checkout
    from trunkline_git_store.repository import Repository
    from trunkline_git_store.store import GitMemoryStore
    from trunkline_git_store.worktree import Worktree
    from trunkline.contracts.conversations.messages import AppendConversation, Message
    from trunkline.contracts.memory.history import RevertMemory
    from trunkline_bus import Refusal

    base, start, step = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    KINDS = {"Checkout": Checkout, "Repository": Repository, "Worktree": Worktree}

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def arm(step):
        kind, method, when, count = step.split(":")
        real, calls = getattr(KINDS[kind], method), [0]
        def armed(self, *arguments, **named):
            calls[0] += 1
            if calls[0] == int(count) and when == "before":
                die()
            if calls[0] == int(count) and when == "half":
                path, size, tail = arguments
                real(self, path, size, tail[: len(tail) // 2])
                die()
            result = real(self, *arguments, **named)
            if calls[0] == int(count) and when == "after":
                die()
            return result
        setattr(KINDS[kind], method, armed)

    def say(**said):
        os.write(1, (json.dumps(said) + "\\n").encode())

    async def files(store, who):
        for number in range(start, start + 100_000):
            path, text = f"w{who}/{number % 3}.md", f"{who} {number} " * 40
            say(try_=path, text=text)
            version = await store.change(Change({path: text.encode()}, actor=f"w{who}", reason=""))
            say(done=path, text=text, version=version)
            if number % 7 == 6:
                say(gone=path)
                await store.delete(path, actor=f"w{who}", reason="")

    async def changes(store):
        """A file is written, edited, moved, and the move taken back."""
        here, there = "v/here.md", "v/there.md"
        say(gone=there)
        with suppress(Refusal):  # one that was killed between its move and its revert left it
            await store.delete(there, actor="v", reason="")
        for number in range(start, start + 100_000):
            one, two = f"one {number} " * 30, f"two {number} " * 30
            for path, text in ((here, one), (here, two), (there, two)):
                say(try_=path, text=text)
            say(gone=there)
            version = await store.change(Change({here: one.encode()}, actor="v", reason=""))
            say(done=here, text=one, version=version)
            version = await store.edit(here, one, two, actor="v", reason="")
            say(done=here, text=two, version=version)
            say(gone=here)
            version = await store.move(here, there, actor="v", reason="")
            say(done=there, text=two, version=version)
            version = (await store.revert(RevertMemory(path="v", actor="v"))).version
            say(done=here, text=two, version=version)

    async def packing(store):
        while True:
            await anyio.sleep(0.02)
            await store.pack(now=True)

    async def talk(store):
        for number in range(start, start + 100_000):
            message = Message(id=f"m{number}", role="user", content=f"message {number} " * 30)
            append = AppendConversation(block="main", conversation="c", messages=(message,), actor="gateway")
            await store.append_conversation(append)
            say(message=message.id)

    async def main():
        store = GitMemoryStore()
        await store.open(StoreContext(base / "memory", base / "cache"))
        if step:
            arm(step)
        say(open=True)
        async with anyio.create_task_group() as group:
            for who in range(3):
                group.start_soon(files, store, who)
            group.start_soon(talk, store)
            group.start_soon(changes, store)
            if not step:
                group.start_soon(packing, store)

    anyio.run(main)
    '''
)

STEPS = [
    "Checkout:stage:before:1",
    "Checkout:stage:after:3",
    "Checkout:write_intent:before:3",
    "Checkout:write_intent:after:1",
    "Checkout:write_intent:after:3",
    "Repository:advance_branch:after:1",
    "Repository:advance_branch:after:3",
    "Worktree:place:before:1",
    "Worktree:place:after:4",
    "Worktree:remove:after:1",
    "Worktree:append:half:2",
    "Worktree:append:after:2",
    "Worktree:sync_folders:before:3",
    "Checkout:place:after:3",
]


class Seen:
    """The reports of a writer before it was killed: tried and acknowledged texts by path, and acknowledged messages."""

    def __init__(self) -> None:
        self.tried: dict[str, set[str]] = defaultdict(set)
        self.versions: list[tuple[str, str, str]] = []
        self.last: dict[str, str] = {}
        self.deleted: set[str] = set()
        self.messages: list[str] = []

    def take(self, line: bytes) -> None:
        said = json.loads(line)
        if "try_" in said:
            self.tried[said["try_"]].add(said["text"])
        elif "done" in said:
            self.versions.append((said["done"], said["version"], said["text"]))
            self.last[said["done"]] = said["text"]
        elif "gone" in said:
            self.deleted.add(said["gone"])
        elif "message" in said:
            self.messages.append(said["message"])


def run_until_dead(base: Path, start: int, seen: Seen, *, step: str = "", seconds: float = 0.0) -> None:
    """Run a writer until it kills itself at ``step``, or kill it after ``seconds`` of writing."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(base), str(start), step],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        if json.loads(process.stdout.readline() or b"{}") != {"open": True}:
            raise AssertionError(process.stderr.read().decode())
        if not step:
            time.sleep(seconds)
            os.kill(process.pid, signal.SIGKILL)
        for line in process.stdout.read().splitlines():
            seen.take(line)
        assert process.wait(30) == -signal.SIGKILL, process.stderr.read().decode()


def die_at_once(script: str, base: Path, step: str) -> None:
    """Run a script that kills itself at a step of its beginning."""
    command = [sys.executable, "-c", script, str(base), "0", step]
    process = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()


async def check(opened: Opened, root: Path, git: Git, seen: Seen) -> None:
    """Open the root again and compare it with the acknowledged changes."""
    async with opened() as store:
        for path, version, text in seen.versions:
            assert (await store.read(path, version)).content == text
        for path, texts in seen.tried.items():
            try:
                assert (await store.read(path)).content in texts
            except Refusal:
                assert path in seen.deleted or path not in seen.last
        newest = {path: version for path, version, _ in seen.versions}
        for path, version in newest.items():
            found = {change.version for change in await store.history(path, limit=100_000)}
            assert version in found
            assert (await store.blame(path, version)).spans
        if seen.last:
            text = next(iter(seen.last.values())).split()[0]
            assert await store.search(SearchMemory(query=text))
        talk = await store.load_conversation("main", "c", after=0)
        ids = [message.id for message in talk.messages]
        assert len(set(ids)) == len(ids)
        assert ids[: len(seen.messages)] == seen.messages
        assert len(ids) <= len(seen.messages) + 1
        seen.messages[:] = ids
    assert git("fsck", "--full", "--strict", "--no-dangling") == ""
    assert git("status", "--porcelain") == ""
    assert "Edited by hand" not in git("log", "--format=%s")
    assert list((root / ".git/trunkline/stage").iterdir()) == []


@pytest.mark.parametrize("step", STEPS)
async def test_killed_at_a_step(step: str, opened: Opened, root: Path, git: Git, tmp_path: Path) -> None:
    """Killed between any two steps of a commit, memory opens again with all that was acknowledged, and nothing half."""
    seen = Seen()
    run_until_dead(tmp_path, 0, seen, step=step)
    await check(opened, root, git, seen)


async def test_killed_repeatedly(opened: Opened, root: Path, git: Git, tmp_path: Path) -> None:
    """Killed ten times at random instants, the one root never loses an acknowledged write."""
    seen, dice = Seen(), random.Random(11)
    for round_ in range(10):
        run_until_dead(tmp_path, round_ * 100_000, seen, seconds=dice.uniform(0.0, 0.3))
        await check(opened, root, git, seen)


async def test_killed_during_start(opened: Opened, git: Git, tmp_path: Path) -> None:
    """Killed in its very first commit, a memory begins again as if nothing had been."""
    script = WRITER.replace("async def main():", "async def main():\n    arm(step)").replace(
        "    if step:\n        arm(step)\n", ""
    )
    for step in (
        "Checkout:stage:after:1",
        "Checkout:write_intent:after:1",
        "Repository:advance_branch:after:1",
        "Worktree:place:after:2",
    ):
        die_at_once(script, tmp_path / step.replace(":", "-"), step)
        base = tmp_path / step.replace(":", "-")
        async with opened(base) as store:
            assert (await store.read("AGENT.md")).content.startswith("# Your instructions")
        assert git("fsck", "--strict", "--no-dangling", at=base / "memory") == ""
        assert git("log", "--format=%s", at=base / "memory").splitlines() == ["Begin this memory"]


DELETER = textwrap.dedent(
    '''
    """Deletes a folder, and kills itself when the files are gone and the folders are not."""
    import os, signal, sys
    from pathlib import Path

    import anyio

    from trunkline.contracts.memory.store import Change, StoreContext
    from trunkline_git_store.store import GitMemoryStore

    async def main():
        base, store = Path(sys.argv[1]), GitMemoryStore()
        await store.open(StoreContext(base / "memory", base / "cache"))
        files = {"w/kept.md": b"x", "w/deep/er/a.md": b"x"}
        await store.change(Change(files, actor="w", reason=""))
        os.rmdir = lambda *given, **named: os.kill(os.getpid(), signal.SIGKILL)
        await store.delete("w/deep", actor="w", reason="")

    anyio.run(main)
    '''
)


async def test_killed_before_empty_folders_are_removed(opened: Opened, root: Path, tmp_path: Path) -> None:
    """No empty folder is left: a block that was deleted would still seem to be there."""
    die_at_once(DELETER, tmp_path, "")
    async with opened():
        assert [path.name for path in (root / "w").iterdir()] == ["kept.md"]
