"""The store compared with a simple model: a dict predicts the outcome of any operations in any order."""

import os
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from trunkline.contracts.memory.history import RevertMemory
from trunkline.contracts.memory.path_rules import is_under, parents
from trunkline.contracts.memory.store import Change, StoreContext
from trunkline_bus import Refusal
from trunkline_git_store.store import GitMemoryStore

PATHS = st.sampled_from(["a", "b", "a/x", "a/y", "b/z/q", "c", "d/e"])
TEXTS = st.text("xyz\n", max_size=6)

Files = dict[str, bytes]


class Model(RuleBasedStateMachine):
    """A store on a disk, and the dict that its files must equal."""

    def __init__(self) -> None:
        super().__init__()
        self.held = ExitStack()
        self.base = Path(self.held.enter_context(tempfile.TemporaryDirectory()))
        self.portal: BlockingPortal = self.held.enter_context(start_blocking_portal())
        self.root = self.base / "memory"
        self.files: Files = {}
        self.before: list[tuple[str | None, Files, Files]] = []
        """Each change: its version (None by hand), and the files before and after."""
        self.by_hand: set[str] = set()

    @initialize()
    def open(self) -> None:
        """Take the root."""
        self.store = GitMemoryStore()
        self.portal.call(
            self.store.open, StoreContext(self.root, self.base / "cache", commit_window=0, fsync=False)
        )
        self.files = self.on_disk()
        self.by_hand.clear()

    def teardown(self) -> None:
        """Check that every known version has its content, and that each line has an author."""
        try:
            for version, _, after in self.before:
                for path, data in after.items() if version else ():
                    assert self.done(lambda p=path, v=version: self.store.read(p, v)).content == data.decode()
            for path, data in self.files.items():
                if not self.by_hand and data:
                    spans = self.done(lambda p=path: self.store.blame(p)).spans
                    lines = "\n".join(line for span in spans for line in span.lines)
                    assert lines == data.decode().removesuffix("\n")
            self.portal.call(self.store.aclose)
        finally:
            self.held.close()

    # Changing ------------------------------------------------------------------------------------------------

    @rule(path=PATHS, text=TEXTS)
    def write(self, path: str, text: str) -> None:
        """A whole file."""
        change = Change({path: text.encode()}, actor="a", reason="")
        self.change(lambda: self.store.change(change), {**self.files, path: text.encode()}, self.fits(path))

    @rule(path=PATHS, text=TEXTS, stale=st.booleans())
    def write_expected(self, path: str, text: str, stale: bool) -> None:
        """Write a whole file with its current content as the expectation."""
        known = "0" * 40 if stale else ""
        if not stale and path in self.files:
            known = self.done(lambda: self.store.read(path)).hash
        change = Change({path: text.encode()}, actor="a", reason="")
        self.change(
            lambda: self.store.change(change, expected={path: known}),
            {**self.files, path: text.encode()},
            self.fits(path) and not stale,
        )

    @rule(path=PATHS, old=TEXTS)
    def edit(self, path: str, old: str) -> None:
        """Another text in place of the first occurrence."""
        possible = bool(old) and old.encode() in self.files.get(path, b"")
        after = {**self.files}
        if possible:
            after[path] = after[path].replace(old.encode(), b"E", 1)
        self.change(lambda: self.store.edit(path, old, "E", actor="a", reason=""), after, possible)

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        """A file or folder."""
        after = {file: data for file, data in self.files.items() if not is_under(file, path)}
        self.change(lambda: self.store.delete(path, actor="a", reason=""), after, after != self.files)

    @rule(source=PATHS, goal=PATHS)
    def move(self, source: str, goal: str) -> None:
        """A file or folder to where nothing is."""
        moved = {file: data for file, data in self.files.items() if is_under(file, source)}
        possible = bool(moved) and not is_under(goal, source) and goal not in self.files and self.fits(goal)
        after = {file: data for file, data in self.files.items() if file not in moved}
        after |= {goal + file.removeprefix(source): data for file, data in moved.items()}
        self.change(lambda: self.store.move(source, goal, actor="a", reason=""), after, possible)

    @rule(path=PATHS)
    def revert(self, path: str) -> None:
        """The last change of a path, unless a person made it."""
        touching = [one for one in self.before if inside(one[1], path) != inside(one[2], path)]
        if self.by_hand or not touching or touching[-1][0] is None:
            return
        self.back(RevertMemory(path=path, actor="a"), path, touching[-1][1])

    @rule(path=PATHS, data=st.data())
    def go_back(self, path: str, data: st.DataObject) -> None:
        """Go back to a path's content at a version."""
        known = [one for one in self.before if one[0] is not None]
        if self.by_hand or not known:
            return
        version, _, then = data.draw(st.sampled_from(known))
        if inside(then, path):
            self.back(RevertMemory(path=path, to=version, actor="a"), path, then)

    def back(self, request: RevertMemory, path: str, then: Files) -> None:
        """A revert restores the path's content, unless it is current already or the disk is full."""
        after = {file: data for file, data in self.files.items() if not is_under(file, path)} | inside(
            then, path
        )
        room = all(self.fits(file, after) for file in inside(then, path))
        self.change(lambda: self.reverted(request), after, room and after != self.files)

    async def reverted(self, request: RevertMemory) -> str:
        """The version that a revert made."""
        return (await self.store.revert(request)).version

    # By hand, and from outside -------------------------------------------------------------------------------

    @rule(path=PATHS, text=TEXTS)
    def hand(self, path: str, text: str) -> None:
        """A person writes a file."""
        if self.fits(path) and self.files.get(path) != text.encode():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
            self.reported(None, {**self.files, path: text.encode()})
            self.by_hand.add(path)

    @rule(path=PATHS)
    def remove(self, path: str) -> None:
        """A person deletes a file."""
        if path in self.files:
            (self.root / path).unlink()
            for above in reversed(parents(path)):
                if not any((self.root / above).iterdir()):
                    (self.root / above).rmdir()
            self.reported(None, {file: data for file, data in self.files.items() if file != path})
            self.by_hand.add(path)

    @rule()
    def reopen(self) -> None:
        """Stop and start; edits made by hand are committed."""
        self.portal.call(self.store.aclose)
        files = self.files
        self.open()
        assert self.files == files

    @rule()
    def pack(self) -> None:
        """The background's work."""
        self.done(lambda: self.store.pack(now=True))

    @invariant()
    def same(self) -> None:
        """Compare the disk with the model."""
        if self.files:
            assert self.on_disk() == self.files

    # Helpers -------------------------------------------------------------------------------------------------

    def change(self, attempt: Callable[[], Awaitable[str]], after: Files, possible: bool) -> None:
        """Try a change, which succeeds exactly when the model predicts it."""
        try:
            version = self.done(attempt)
        except Refusal:
            assert not possible
            return
        assert possible
        self.reported(version if not self.by_hand else None, after)

    def reported(self, version: str | None, after: Files) -> None:
        """Note a change."""
        if after != self.files:
            self.before.append((version, self.files, after))
            self.files = after

    def done(self, attempt: Callable[[], Awaitable[Any]]) -> Any:
        """Return the result of a coroutine."""

        async def run() -> Any:
            return await attempt()

        return self.portal.call(run)

    def fits(self, path: str, files: Files | None = None) -> bool:
        """No file above a path, no folder in its place."""
        there = self.files if files is None else files
        return not (set(parents(path)) & there.keys()) and not any(
            other != path and is_under(other, path) for other in there
        )

    def on_disk(self) -> Files:
        """The files that a person sees."""
        found: Files = {}
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name != ".git"]
            for name in names:
                file = Path(folder, name)
                found[file.relative_to(self.root).as_posix()] = file.read_bytes()
        return found


def inside(files: Files, path: str) -> Files:
    """The files at or under a path."""
    return {file: data for file, data in files.items() if is_under(file, path)}


Model.TestCase.settings = settings(
    max_examples=15, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
TestModel = pytest.mark.filterwarnings("ignore")(Model.TestCase)
