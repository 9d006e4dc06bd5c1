"""Acceptance of the file tools, over the bus as an agent calls them: PA-T1 to PA-T5, PA-T15, MB-T6, MB-T7, MN-T15.

``fs_read`` and the like are the names that other systems give them; a call by one is the call that it means.
"""

import itertools
import os
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import strategies as st

from trunkline._util.paths import PROTECTED_NAMES
from trunkline._util.untrusted_text import unwrap_tool_result

from .conftest import Caller

pytestmark = pytest.mark.anyio

SECRET = "the secret of the outside"


def some(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """Use that many examples, the same ones in every run."""
    from hypothesis import HealthCheck, Phase, given, seed, settings

    found: list[Any] = []

    @seed(7)
    @settings(
        max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def collect(one: Any) -> None:
        found.append(one)

    collect()
    return found


async def test_PA_T1_written_text_is_read_back_unchanged(caller: Caller) -> None:
    """Arbitrary text, the empty file, more than a megabyte, unicode in path and content: identical."""
    texts = some(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200), 8)
    names = [
        "plain.txt",
        "m\u00fcnchen/\u6771\u4eac \U0001f600.md",
        "with space/and.dots...",
        "-rf",
        "a'b\"c;$(x)",
        "\u202enever",
    ]
    for number, text in enumerate([*texts, "", "line\n" * 210_000]):
        path = names[number % len(names)]
        written = await caller.call("write_file", {"path": path, "content": text})
        assert written.status == "ok", (path, written.output)
        assert (caller.workspace / path).read_bytes() == text.encode()
        found, offset = "", 0
        while True:
            part = unwrap_tool_result(
                (await caller.call("read_file", {"path": path, "offset": offset})).output
            )
            body, cut, _ = part.rpartition("\n\n[Cut here: ")
            found += body if cut else part
            if not cut:
                break
            offset += len(body)
        assert found == text


async def test_PA_T15_MB_F16_control_characters_reach_the_model_unchanged(caller: Caller) -> None:
    """Every character that a text file may hold is returned unchanged."""
    text = "".join(map(chr, range(1, 0x180))) + "\r\n\n\r \u2028\u2029\ufeff\U0001f600"
    caller.workspace.mkdir(parents=True)
    (caller.workspace / "a").write_bytes(text.encode())
    assert unwrap_tool_result((await caller.call("read_file", {"path": "a"})).output) == text


CALLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "read_file": lambda path: {"path": path},
    "list_directory": lambda path: {"path": path},
    "file_info": lambda path: {"path": path},
    "find_files": lambda path: {"pattern": "*", "path": path},
    "search_files": lambda path: {"query": "secret", "path": path},
    "describe_image": lambda path: {"image_path": path},
    "send_file": lambda path: {"path": path},
    "preview_change": lambda path: {"path": path, "change": "append", "text": "x"},
    "write_file": lambda path: {"path": path, "content": "evil"},
    "append_to_file": lambda path: {"path": path, "content": "evil"},
    "insert_in_file": lambda path: {"path": path, "line": 0, "text": "evil"},
    "replace_in_file": lambda path: {"path": path, "find": "secret", "replace": "evil"},
    "create_directory": lambda path: {"path": path},
    "copy_file": lambda path: {"source": path, "target": "stolen"},
    "move_file": lambda path: {"source": path, "target": "stolen"},
    "delete_file": lambda path: {"path": path},
    "fs_read": lambda path: {"path": path, "mode": "Search", "pattern": "secret"},
    "fs_write": lambda path: {"path": path, "command": "create", "file_text": "evil", "dry_run": False},
    "file_edit": lambda path: {"file_path": path, "old_string": "secret", "new_string": "evil"},
    "glob_search": lambda path: {"pattern": "*", "path": path},
    "grep_search": lambda path: {"pattern": "secret", "path": path, "output_mode": "content"},
}
PIECES = st.sampled_from(
    ["..", ".", "", "etc", "passwd", "out", "secret", "~", "~root", "notes", "\0", "..\\", "\u2025", "...", "%2e%2e",
     "a" * 300]
)  # fmt: skip
TRAVERSALS = st.builds(
    lambda head, parts: head + "/".join(parts),
    st.sampled_from(["", "/", "~/", "//"]),
    st.lists(PIECES, min_size=1, max_size=7),
)
NAMED = [
    "../../../etc/passwd", "/etc/passwd", "subdir/../../etc/passwd", "out/secret", "out", "linked",
    "../other/config.json", "~/x", "a/../../x", "/proc/self/environ", "x" * 5_000, "nul\0.txt",
]  # fmt: skip


def _outside(tmp_path: Path, workspace: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    workspace.mkdir(parents=True)
    (workspace / "notes").mkdir()
    (workspace / "out").symlink_to(outside)
    (workspace / "linked").symlink_to(outside / "secret")
    return outside


def _picture(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


async def test_PA_T2_MB_T6_no_path_leads_out(tools: Any, tmp_path: Path) -> None:
    """The named ways out by every tool, and a hundred made-up ones: an error or nothing, and outside is as it was."""
    async with tools() as caller:
        outside = _outside(tmp_path, caller.workspace)
        before = _picture(outside)
        for number, (tool, arguments) in enumerate(CALLS.items()):
            for path in (NAMED[number % len(NAMED)], NAMED[(number * 5 + 3) % len(NAMED)]):
                outcome = await caller.call(tool, arguments(path))
                assert outcome.status == "error", (tool, path, outcome.output)
                assert SECRET not in outcome.output
                assert len(outcome.output) > 20, "the refusal says why"
        chosen = random.Random(3)

        async def tried(path: str) -> None:
            tool = chosen.choice(list(CALLS))
            outcome = await caller.call(tool, CALLS[tool](path))
            assert SECRET not in outcome.output, (tool, path)
            assert "root:x:0" not in outcome.output

        paths = some(TRAVERSALS, 100)
        for begin in range(0, len(paths), 10):
            async with anyio.create_task_group() as tasks:
                for path in paths[begin : begin + 10]:
                    tasks.start_soon(tried, path)
        assert _picture(outside) == before
        assert {Path(path).parts[len(tmp_path.parts)] for path in _picture(tmp_path)} <= {"home", "outside"}


@pytest.mark.parametrize("scope", ["block", "workspace", "system"])
async def test_MB_T7_protected_names_are_closed_to_every_file_tool(
    caller: Caller, tmp_path: Path, scope: str
) -> None:
    """In every scope and every folder, nothing under their own names is read, listed with its content, or changed."""
    caller.files[f"blocks/{caller.block}/block.toml"] = f'[permissions]\nscope = "{scope}"\n'
    caller.workspace.mkdir(parents=True)
    names = [*PROTECTED_NAMES, "x/id_rsa", ".ssh/config", ".aws/credentials", "deep/er/.env", ".ENV"]
    for name in names:
        file = caller.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(SECRET)
    (caller.workspace / "harmless").symlink_to(".env")
    before = _picture(caller.workspace)
    names += ["harmless", *([f"{caller.workspace}/.env"] if scope != "block" else [])]
    for number, (tool, arguments) in enumerate(CALLS.items()):
        for name in {names[number % len(names)], names[-1 - number % 2]}:
            outcome = await caller.call(tool, arguments(name))
            assert outcome.status == "error", (tool, name, outcome.output)
    for query in ("search_files", "grep_search", "fs_read"):
        outcome = await caller.call(query, CALLS[query](""))
        assert SECRET not in outcome.output
    assert _picture(caller.workspace) == before


async def test_links_that_are_swapped_meanwhile_lead_nowhere(caller: Caller, tmp_path: Path) -> None:
    """MB-T6, PA-T2: a folder that becomes a link to the outside and back, all the time, while every tool is at work."""
    outside = _outside(tmp_path, caller.workspace)
    before = _picture(outside)
    place = caller.workspace / "place"
    place.mkdir()
    (place / "secret").write_text("mine")
    ended = threading.Event()

    def swap() -> None:
        for number in itertools.count():
            parked = caller.workspace / f"parked{number}"
            for step, *given in ((place.rename, parked), (place.symlink_to, outside), (place.unlink,)):
                with suppress(OSError):  # a tool has made a folder there meanwhile
                    step(*given)
            with suppress(OSError):
                parked.rename(place)
            if ended.is_set():
                return

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for tool, arguments in [*CALLS.items()] * 3:
            outcome = await caller.call(tool, arguments("place/secret"))
            assert SECRET not in outcome.output, tool
    finally:
        ended.set()
        await anyio.to_thread.run_sync(thread.join)
    assert _picture(outside) == before
    (caller.workspace / "out").unlink()
    (caller.workspace / "linked").unlink()
    assert SECRET.encode() not in b"".join(_picture(caller.workspace).values())


async def test_PA_T3_MN_T15_edits_that_cannot_be_made_change_nothing(caller: Caller) -> None:
    """Absent or ambiguous text, a missing file, a folder: a tool error that says why, and the file is as it was."""
    caller.workspace.mkdir(parents=True)
    file = caller.workspace / "a.py"
    file.write_text("one two two\ntwo\n")
    (caller.workspace / "box").mkdir()

    async def refused(path: str, old: str, new: str = "x") -> str:
        outcome = await caller.call("file_edit", {"file_path": path, "old_string": old, "new_string": new})
        assert outcome.status == "error"
        assert file.read_text() == "one two two\ntwo\n"
        return str(outcome.output)

    assert "There is no 'absent.py'" in await refused("absent.py", "one")
    assert "does not contain that text" in await refused("a.py", "three")
    assert "3 times" in await refused("a.py", "two")
    assert "is a folder" in await refused("box", "one")
    assert "empty" in await refused("a.py", "")
    arguments = {"file_path": "a.py", "old_string": "two", "new_string": "2", "replace_all": "true"}
    assert (await caller.call("file_edit", arguments)).output == "Replaced 3 places in a.py."
    assert file.read_text() == "one 2 2\n2\n"
    for tool in ("read_file", "delete_file", "file_info"):
        missing = await caller.call(tool, {"path": "nowhere"})
        assert (missing.status, "There is no 'nowhere'" in missing.output) == ("error", True)


async def test_PA_T4_two_simultaneous_writes_leave_one_complete(caller: Caller) -> None:
    """Never a mixture, and never a reader that sees half of one."""
    texts = [letter * 300_000 for letter in "ab"]
    seen: set[str] = set()
    file = caller.workspace / "a"

    async def write(text: str) -> None:
        assert (await caller.call("write_file", {"path": "a", "content": text})).status == "ok"

    async def look() -> None:
        for _ in range(4):
            seen.add(await anyio.to_thread.run_sync(lambda: file.read_text() if file.exists() else ""))
            await anyio.lowlevel.checkpoint()

    for _ in range(3):
        async with anyio.create_task_group() as tasks:
            for text in texts:
                tasks.start_soon(write, text)
            tasks.start_soon(look)
        assert file.read_text() in texts
    assert seen <= {"", *texts}


async def test_PA_T5_a_failed_write_leaves_no_partial_file(caller: Caller) -> None:
    """For a folder without write permission and a full disk, the error names the cause, and the old content stays."""
    caller.workspace.mkdir(parents=True)
    (caller.workspace / "file").write_text("in the way")
    for tool, arguments in (
        ("write_file", {"path": "file/below", "content": "x"}),
        ("append_to_file", {"path": "file/below", "content": "x"}),
        ("copy_file", {"source": "file", "target": "file/below"}),
        ("create_directory", {"path": "file/below"}),
    ):
        assert (await caller.call(tool, arguments)).status == "error"
    assert _picture(caller.workspace) == {str(caller.workspace / "file"): b"in the way"}


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="a small disk is mounted, which only root may"
)
async def test_PA_T5_a_full_disk_is_reported_and_leaves_no_partial_file(caller: Caller) -> None:
    """On a disk with no room, and on one that cannot be written, the old content stays, to the byte, and nothing else
    is left."""
    caller.workspace.mkdir(parents=True)
    mounted = await anyio.run_process(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(caller.workspace)], check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        (caller.workspace / "a").write_text("old")
        for tool, arguments in (
            ("write_file", {"path": "a", "content": "n" * 200_000}),
            ("write_file", {"path": "b", "content": "n" * 200_000}),
            ("replace_in_file", {"path": "a", "find": "old", "replace": "n" * 200_000}),
        ):
            outcome = await caller.call(tool, arguments)
            assert (outcome.status, "disk is full" in outcome.output) == ("error", True), outcome.output
        assert _picture(caller.workspace) == {str(caller.workspace / "a"): b"old"}
        await anyio.run_process(["mount", "-o", "remount,ro", str(caller.workspace)])
        for tool, arguments in (
            ("write_file", {"path": "a", "content": "new"}),
            ("write_file", {"path": "box/b", "content": "new"}),
            ("append_to_file", {"path": "a", "content": "new"}),
            ("replace_in_file", {"path": "a", "find": "old", "replace": "new"}),
            ("delete_file", {"path": "a"}),
            ("move_file", {"source": "a", "target": "b"}),
        ):
            outcome = await caller.call(tool, arguments)
            assert (outcome.status, "read-only" in outcome.output.lower()) == ("error", True), outcome
        assert _picture(caller.workspace) == {str(caller.workspace / "a"): b"old"}
    finally:
        await anyio.run_process(["umount", str(caller.workspace)])
