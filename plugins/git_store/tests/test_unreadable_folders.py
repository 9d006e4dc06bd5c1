"""Files and folders in memory that the system does not let us open: nothing else is held up, and nothing is lost."""

import json
from pathlib import Path

from tests.unprivileged import run_bound

SCRIPT = """
import json, sys, tarfile
from pathlib import Path
import anyio
from trunkline.contracts.memory.store import Change, StoreContext
from trunkline_git_store.store import GitMemoryStore
from trunkline_bus import Refusal

base = Path(sys.argv[1])
root, told = base / "memory", {}

async def said(call):
    try:
        await call
    except Refusal as refusal:
        return [refusal.code, refusal.message]
    return ["", ""]

async def main():
    store = GitMemoryStore()
    await store.open(StoreContext(root, base / "cache"))
    files = {"shut/a.md": b"a", "shut/deep/b.md": b"b", "file.md": b"c"}
    await store.change(Change(files, actor="agent", reason=""))
    (root / "shut").chmod(0)
    (root / "file.md").chmod(0)
    (root / "new.md").write_text("by hand")
    await store.export(base / "x.tar")
    with tarfile.open(base / "x.tar") as tar:
        told["archive"] = tar.getnames()
    told["read"] = await said(store.read("shut/a.md"))
    told["read file"] = await said(store.read("file.md"))
    told["list"] = await said(store.list("shut", recursive=True))
    told["write"] = await said(store.change(Change({"shut/c.md": b"x"}, actor="agent", reason="")))
    told["delete"] = await said(store.delete("shut", actor="agent", reason=""))
    told["write elsewhere"] = await said(store.change(Change({"d.md": b"x"}, actor="agent", reason="")))
    await store.aclose()
    store = GitMemoryStore()
    await store.open(StoreContext(root, base / "cache"))
    await store.aclose()
    (root / "shut").chmod(0o755)
    (root / "file.md").chmod(0o644)
    print(json.dumps(told))

anyio.run(main)
"""


def test_an_unreadable_folder_stays_in_history_and_blocks_nothing(tmp_path: Path) -> None:
    """A committed folder without permissions is not treated as deleted, and stops no export, no other write and no
    start; a reader of the folder gets its name and the fix."""
    reported = json.loads(run_bound(SCRIPT, str(tmp_path)))
    assert {"memory/shut/a.md", "memory/shut/deep/b.md", "memory/file.md", "memory/new.md"} <= set(
        reported["archive"]
    )
    assert reported["write elsewhere"] == ["", ""]
    for what in ("read", "list", "write", "delete"):
        assert "'shut'" in reported[what][1] and "chmod" in reported[what][1], reported[what]
    assert "'file.md'" in reported["read file"][1]
    assert (tmp_path / "memory/shut/deep/b.md").read_text() == "b"
