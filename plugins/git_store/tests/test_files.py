"""Reading and writing files: what goes in comes out, what must not be is refused, and nothing is half done."""

import os
import random
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.contracts.memory.initial_files import INITIAL_FILES
from trunkline.contracts.memory.path_rules import normalize_path
from trunkline.contracts.memory.store import Change
from trunkline_bus import Refusal
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio

Git = Callable[..., str]
Write = Callable[..., Awaitable[str]]

HOSTILE = (
    "../../../etc/passwd", "/etc/passwd", "subdir/../../etc/passwd", "..", "a/..", "~/x", "~root/x", "a/~b", "", "/",
    ".", "a\0b", "a\nb", "a\\b", "x" * 256, "d/" * 65 + "x", "x/" * 1500, ".git/config", ".GIT/HEAD", "a/.git/hooks/x",
    ".g\u200cit/config", "git~1/config", ".gitmodules", "notes/.env", "id_rsa", ".ssh/config",
    "a\ud800b",
)  # fmt: skip


def names_in(folder: Path) -> set[str]:
    """The names in a folder."""
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    "text",
    ["", "plain", "Grüße 東京 🎈", "a\r\nb\n\n", "\0\x01\x7f", "\ufeffbom", "no end\n" * 200_000],
    ids=["empty", "ascii", "unicode", "crlf", "control", "bom", "large"],
)
@pytest.mark.parametrize("path", ["a.md", "deep/er/ünï 東京.md", "spaces and 'quotes'/x"])
async def test_any_text_is_read_back_identical(
    store: GitMemoryStore, write: Write, path: str, text: str
) -> None:
    """PA-T1: arbitrary text, empty, more than 1 MB, unicode in path and content."""
    await write(path, text)
    assert (await store.read(path)).content == text


async def test_a_file_is_plain_on_disk(write: Write, root: Path) -> None:
    """A person finds the text under the same name, and nothing else lies around (ARCH-1)."""
    await write("notes/a.md", "hello")
    assert (root / "notes/a.md").read_text() == "hello"
    assert names_in(root) - {".git"} == {"notes", *(path.split("/")[0] for path in INITIAL_FILES)}


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: ascii(path)[:24])
async def test_hostile_paths_are_refused_everywhere(store: GitMemoryStore, path: str, tmp_path: Path) -> None:
    """PA-T2: every operation refuses with invalid_path; nothing is read and nothing appears outside."""
    outside = names_in(tmp_path)
    for attempt in (
        store.read(path),
        store.change(Change({path: b"x"}, actor="a", reason="")),
        store.edit(path, "a", "b", actor="a", reason=""),
        store.delete(path, actor="a", reason=""),
        store.move(path, "b.md", actor="a", reason=""),
        store.move("AGENT.md", path, actor="a", reason=""),
    ):
        with pytest.raises(Refusal) as refused:
            await attempt
        assert refused.value.code == "invalid_path"
    assert names_in(tmp_path) == outside


async def test_random_traversals_never_leave_the_root(store: GitMemoryStore, tmp_path: Path) -> None:
    """PA-T2: a hundred random paths made of dangerous parts are refused or find nothing."""
    (tmp_path / "secret.md").write_text("secret")
    dice = random.Random(7)
    for _ in range(100):
        parts = dice.choices(
            ["..", ".", "", "memory", "secret.md", "a", "%2e%2e", "..;", "~"], k=dice.randint(1, 6)
        )
        with pytest.raises(Refusal) as refused:
            await store.read("/".join(parts))
        assert refused.value.code in ("invalid_path", "not_found")


async def test_a_folder_is_not_read_as_a_file(store: GitMemoryStore, write: Write) -> None:
    """The error names a folder as such, and is no failure of the service."""
    await write("notes/a.md", "hello")
    with pytest.raises(Refusal, match="it is a folder") as refused:
        await store.read("notes")
    assert refused.value.code == "invalid_path"


async def test_links_are_not_followed(store: GitMemoryStore, root: Path, tmp_path: Path) -> None:
    """PA-T2, PA-F11: a link to a file or folder outside is neither read, written through, listed nor searched."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.md").write_text("secret words")
    (root / "file.md").symlink_to(tmp_path / "outside/secret.md")
    (root / "folder").symlink_to(tmp_path / "outside")
    for path in ("file.md", "folder/secret.md", "folder/new.md"):
        with pytest.raises(Refusal):
            await store.read(path)
        with pytest.raises(Refusal):
            await store.change(Change({path: b"x"}, actor="a", reason=""))
    assert (tmp_path / "outside/secret.md").read_text() == "secret words"
    assert not (tmp_path / "outside/new.md").exists()
    assert "file.md" not in {entry.path for entry in await store.list("", recursive=True)}


async def test_special_files_do_not_hang(store: GitMemoryStore, root: Path) -> None:
    """A pipe in the root is refused at once instead of being waited for."""
    os.mkfifo(root / "pipe")
    with anyio.fail_after(60), pytest.raises(Refusal):
        await store.read("pipe")


async def test_a_missing_file_is_not_found(store: GitMemoryStore) -> None:
    """PA-T3: reading, editing, deleting and moving a missing file fail."""
    for attempt in (
        store.read("nope.md"),
        store.edit("nope.md", "a", "b", actor="a", reason=""),
        store.delete("nope", actor="a", reason=""),
        store.move("nope", "b", actor="a", reason=""),
        store.list("nope", recursive=False),
        store.history("nope", limit=5),
        store.read("AGENT.md", "0" * 40),
        store.read("AGENT.md", "HEAD"),
    ):
        with pytest.raises(Refusal) as refused:
            await attempt
        assert refused.value.code == "not_found"


async def test_editing_an_absent_text_changes_nothing(store: GitMemoryStore, write: Write) -> None:
    """PA-T3: refused with write_conflict, and no commit is made."""
    version = await write("a.md", "one two")
    for old in ("three", ""):
        with pytest.raises(Refusal) as refused:
            await store.edit("a.md", old, "x", actor="a", reason="")
        assert refused.value.code == "write_conflict"
    assert (await store.read("a.md")).content == "one two"
    assert [change.version for change in await store.history("a.md", limit=5)] == [version]


async def test_expected_content_guards_a_write(store: GitMemoryStore, write: Write) -> None:
    """A write with the hash that was read goes through once; a stale one, or one that expects absence, is refused."""
    await write("a.md", "one")
    seen = (await store.read("a.md")).hash
    await store.change(Change({"a.md": b"two"}, actor="a", reason=""), expected={"a.md": seen})
    for wanted in (seen, ""):
        with pytest.raises(Refusal) as refused:
            await store.change(Change({"a.md": b"three"}, actor="a", reason=""), expected={"a.md": wanted})
        assert refused.value.code == "write_conflict"
    assert (await store.read("a.md")).content == "two"
    await store.change(Change({"new.md": b"x"}, actor="a", reason=""), expected={"new.md": ""})


async def test_only_one_of_many_that_expect_the_same_wins(store: GitMemoryStore, write: Write) -> None:
    """Compare-and-set holds also inside one group of writes."""
    await write("count.md", "0")
    seen = (await store.read("count.md")).hash
    won: list[int] = []

    async def attempt(number: int) -> None:
        try:
            change = Change({"count.md": str(number).encode()}, actor="a", reason="")
            await store.change(change, expected={"count.md": seen})
            won.append(number)
        except Refusal as refusal:
            assert refusal.code == "write_conflict"

    async with anyio.create_task_group() as group:
        for number in range(1, 21):
            group.start_soon(attempt, number)
    assert len(won) == 1
    assert (await store.read("count.md")).content == str(won[0])


async def test_simultaneous_writes_never_mix(store: GitMemoryStore, write: Write) -> None:
    """PA-T4: the file holds one of the contents, and every acknowledged one is in history."""
    texts = [f"{letter}" * 10_000 for letter in "abcdefgh"]
    async with anyio.create_task_group() as group:
        for text in texts:
            group.start_soon(write, "a.md", text)
    assert (await store.read("a.md")).content in texts
    versions = [change.version for change in await store.history("a.md", limit=50)]
    assert {(await store.read("a.md", version)).content for version in versions} == set(texts)


async def test_files_of_one_change_are_committed_atomically(store: GitMemoryStore) -> None:
    """When one path of a change is refused, none of its files is written."""
    with pytest.raises(Refusal):
        await store.change(Change({"a.md": b"x", "AGENT.md/b.md": b"y"}, actor="a", reason=""))
    with pytest.raises(Refusal) as refused:
        await store.read("a.md")
    assert refused.value.code == "not_found"


async def test_a_refused_change_does_not_affect_its_group(
    store: GitMemoryStore, write: Write, root: Path
) -> None:
    """A write that cannot be placed fails alone; the others of its group are committed (PA-T5)."""
    (root / "blocked").mkdir()
    (root / "blocked/pipe").symlink_to("nowhere")
    failed: list[str] = []

    async def attempt(path: str) -> None:
        try:
            await write(path, "x")
        except Refusal as refusal:
            failed.append(f"{path} {refusal.code}")

    async with anyio.create_task_group() as group:
        for path in ("ok1.md", "blocked", "ok2.md", "blocked/pipe", "ok3.md"):
            group.start_soon(attempt, path)
    assert sorted(failed) == ["blocked invalid_path", "blocked/pipe invalid_path"]
    for path in ("ok1.md", "ok2.md", "ok3.md"):
        assert (await store.read(path)).content == "x"


async def test_a_file_cannot_replace_a_folder(store: GitMemoryStore, write: Write) -> None:
    """A folder is not overwritten by a file, nor a file by a folder."""
    await write("a/b.md", "x")
    for path in ("a", "a/b.md/c.md"):
        with pytest.raises(Refusal) as refused:
            await write(path, "y")
        assert refused.value.code == "invalid_path"


async def test_deleting_takes_a_folder_with_all_in_it(
    store: GitMemoryStore, write: Write, root: Path
) -> None:
    """The files go, the emptied folders too, and history still has the content."""
    version = await write("a/b/c.md", "kept")
    await write("a/d.md", "x")
    await store.delete("a", actor="agent", reason="tidy")
    assert not (root / "a").exists()
    assert (await store.read("a/b/c.md", version)).content == "kept"


async def test_moving_keeps_every_byte(store: GitMemoryStore, write: Write, root: Path) -> None:
    """A folder moves in one commit, binary files included; a taken target is refused."""
    await write("a/x.md", "one")
    (root / "a/picture.bin").write_bytes(bytes(range(256)))
    await store.move("a", "archive/a", actor="owner", reason="")
    assert (root / "archive/a/picture.bin").read_bytes() == bytes(range(256))
    assert not (root / "a").exists()
    await store.move("archive/a", "a", actor="owner", reason="")
    assert (root / "a/picture.bin").read_bytes() == bytes(range(256))
    for target in ("a/inner", "AGENT.md", "identity"):
        with pytest.raises(Refusal):
            await store.move("a", target, actor="owner", reason="")


async def test_listing_distinguishes_files_and_folders(store: GitMemoryStore, write: Write) -> None:
    """Names sorted, with kind and size; recursive reaches all."""
    await write("a/b/c.md", "1234")
    flat = await store.list("a", recursive=False)
    assert [(entry.path, entry.kind) for entry in flat] == [("a/b", "folder")]
    deep = await store.list("", recursive=True)
    assert [entry.path for entry in deep] == sorted(entry.path for entry in deep)
    assert next(entry for entry in deep if entry.path == "a/b/c.md").size == 4


async def test_a_binary_file_is_refused_as_text(store: GitMemoryStore, root: Path) -> None:
    """The error states that the file is not text."""
    (root / "x.bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Refusal, match="not a text file"):
        await store.read("x.bin")


async def test_half_letters_are_refused(store: GitMemoryStore) -> None:
    """Text with lone surrogates cannot be stored and is refused before anything is written."""
    with pytest.raises(Refusal, match="surrogates"):
        await store.edit("AGENT.md", "# Instructions", "\ud800", actor="a", reason="")


async def test_a_change_that_changes_nothing_makes_no_commit(write: Write, git: Git) -> None:
    """Writing the existing text leaves history unchanged."""
    await write("a.md", "same")
    before = git("rev-list", "--count", "HEAD")
    await write("a.md", "same")
    assert git("rev-list", "--count", "HEAD") == before


async def test_executable_files_stay_so(store: GitMemoryStore, root: Path) -> None:
    """A script that a person put there keeps its mode when its text is edited."""
    script = root / "run.sh"
    script.write_text("echo one\n")
    script.chmod(0o755)
    await store.edit("run.sh", "one", "two", actor="a", reason="")
    assert script.stat().st_mode & stat.S_IXUSR
    assert script.read_text() == "echo two\n"


async def test_names_that_differ_only_in_case_are_distinct(store: GitMemoryStore, write: Write) -> None:
    """On a file system without case, a second such name is refused instead of mixed up."""
    await write("Notes/a.md", "x")
    store._components.worktree.folds = True  # as it is found to be on most Macs
    for path in ("Notes/A.md", "NOTES/c.md", "agent.md"):
        with pytest.raises(Refusal) as refused:
            await write(path, "y")
        assert refused.value.code == "write_conflict"
    await write("Notes/a.md", "changed")
    await store.delete("Notes/a.md", actor="a", reason="")
    await write("other/a.md", "y")


async def test_the_root_is_for_its_owner_only(store: GitMemoryStore, root: Path) -> None:
    """A new memory root cannot be read by other users."""
    assert stat.S_IMODE((await anyio.Path(root).stat()).st_mode) == 0o700


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
PATHS = st.lists(NAMES | st.sampled_from(["..", ".", "", "~", ".git", ".GIT", "a\\b", "\0"]), max_size=5).map(
    "/".join
)


@given(PATHS)
def test_an_allowed_path_is_plain_and_inside(path: str) -> None:
    """Any path that the rules permit has no way up or out, and is in normal form."""
    try:
        plain = normalize_path(path)
    except Refusal as refusal:
        assert refusal.code == "invalid_path"
        return
    assert plain == normalize_path(plain)
    assert not plain.startswith(("/", "~"))
    assert not {"", ".", "..", ".git"} & {part.lower() for part in plain.split("/")}
    joined = Path("/root/memory", plain)
    assert os.path.normpath(joined) == str(joined)
