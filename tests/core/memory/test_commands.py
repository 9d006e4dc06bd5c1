"""``trunkline memory`` as a person uses it: the input and the output, on a separate home."""

import json
import tarfile
from functools import partial
from pathlib import Path

import pytest

from tests.support.commands import Run, run_trunkline


@pytest.fixture
def memory(tmp_path: Path) -> Run:
    """Runs ``trunkline memory ARGUMENTS``."""
    return partial(run_trunkline, tmp_path / "home", "memory")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder of good, bad and hidden files."""
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "garden.md").write_text("# Garden\nThe climbing frame is green.\n")
    (folder / "sub/ünï.txt").write_text("Grüße")
    (folder / "data.bin").write_bytes(b"\x89PNG\0")
    (folder / "latin.txt").write_bytes("Käse".encode("latin-1"))
    (folder / "prod.env").write_text("KEY=1")
    (folder / "huge.txt").write_text("x" * 5_000_000)
    (folder / ".hidden.md").write_text("hidden")
    (folder / "link.md").symlink_to("/etc/passwd")
    return folder


def test_a_folder_is_added_and_found(memory: Run, notes: Path) -> None:
    """Text is brought, everything else is reported with the reason, and search finds it."""
    added = memory("add", str(notes))
    assert (added.returncode, added.stdout) == (0, "Added 2 files under documents/, skipped 4.\n")
    reasons = dict(
        line.removeprefix(f"Skipped {notes}/").split(": ", 1) for line in added.stderr.splitlines()
    )
    assert reasons["data.bin"] == "it is binary, and no reader is there for it"
    assert reasons["latin.txt"] == "it is not text in UTF-8 (iconv converts it)"
    assert reasons["huge.txt"] == "it is larger than 4 MB"
    assert "secrets" in reasons["prod.env"]
    found = memory("search", "climbing frames")
    assert found.stdout == "documents/notes/garden.md:2: The climbing frame is green.\n"
    assert memory("search", "climbing", "frames").stdout == found.stdout
    assert memory("show", "documents/notes/sub/ünï.txt").stdout == "Grüße\n"


def test_a_file_is_added_for_a_block(memory: Run, notes: Path) -> None:
    """--block puts it into the block's folder, the default one's before its first message has made it; bringing it
    again replaces it and keeps history. No other block is made so."""
    refused = memory("add", str(notes / "garden.md"), "--block", "garden", "--json")
    assert "there is no block called 'garden'" in json.loads(refused.stdout)["skipped"][0]["reason"]
    for text in ("one", "two"):
        (notes / "garden.md").write_text(text)
        added = memory("add", str(notes / "garden.md"), "--block", "main", "--json")
        assert json.loads(added.stdout) == {"added": ["blocks/main/documents/garden.md"], "skipped": []}
    changes = json.loads(memory("history", "blocks/main/documents/garden.md", "--json").stdout)
    assert [change.get("previous") for change in changes] == ["one", None]
    old = memory("show", "blocks/main/documents/garden.md", "--version", changes[1]["version"])
    assert old.stdout == "one\n"


def test_many_files_are_few_commits(memory: Run, tmp_path: Path) -> None:
    """Hundreds of files come in portions, and all are there."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(250):
        (folder / f"{number}.md").write_text(f"note {number}")
    assert memory("add", str(folder)).stdout == "Added 250 files under documents/.\n"
    assert len(json.loads(memory("list", "documents/many", "--json").stdout)) == 250
    assert len(json.loads(memory("history", "documents", "--json").stdout)) == 3


def test_adding_no_files_is_an_error(memory: Run, notes: Path, tmp_path: Path) -> None:
    """A missing file, a binary one alone, and a bad block: non-zero, with a sentence."""
    missing = memory("add", str(tmp_path / "nope"))
    assert missing.returncode == 1
    assert "There is no file or folder" in missing.stderr
    assert memory("add", str(notes / "data.bin")).returncode == 1
    assert memory("add", str(notes / "garden.md"), "--block", "No Such").returncode == 2


def test_errors_are_reported_in_one_sentence(memory: Run) -> None:
    """A missing file and a path that is not allowed exit with 1: a sentence, a hint, and no traceback."""
    for arguments in (("show", "nope.md"), ("show", "../x"), ("list", "nope"), ("history", "nope")):
        done = memory(*arguments)
        assert done.returncode == 1
        assert done.stderr.startswith("Error: ")
        assert len(done.stderr.splitlines()) == 2
        assert done.stderr.splitlines()[1].startswith("Hint: ")
    assert memory("search", "xylophone quartet").returncode == 1
    assert memory("search", "x", "--limit", "0").returncode == 2


def test_a_missing_path_is_reported_with_a_hint(memory: Run, notes: Path) -> None:
    """A name that memory does not know ends with 1 and the command that lists the names it does know."""
    memory("add", str(notes / "garden.md"))
    asked = {
        ("show", "nothing.md"): "trunkline memory list",
        ("show", "documents"): "trunkline memory list",
        ("show", "documents/garden.md", "--version", "dead"): "trunkline memory history",
        ("revert", "documents/garden.md", "--version", "dead"): "trunkline memory history",
        ("diff", "documents/garden.md", "dead"): "trunkline memory history",
        ("history", "nothing.md"): "trunkline memory list",
        ("blame", "nothing.md"): "trunkline memory list",
        ("forget", "chunk-x"): "trunkline memory chunks list",
        ("chunks", "show", "chunk-x"): "trunkline memory chunks list",
        ("purge", "nothing.md", "--confirm", "nothing.md"): "trunkline memory list",
    }
    for arguments, command in asked.items():
        done = memory(*arguments)
        assert (done.returncode, done.stdout) == (1, ""), arguments
        assert f'"{command}' in done.stderr.partition("Hint: ")[2], (arguments, done.stderr)
    assert memory("blame", "documents/garden.md", "--lines", "7-9").stderr == "There are no such lines.\n"
    assert "it is a symbolic link" in memory("add", str(notes / "link.md")).stderr


def test_a_usage_error_is_reported_before_history_is_touched(memory: Run, notes: Path) -> None:
    """A confirmation that is another name purges nothing and promises nothing."""
    memory("add", str(notes / "garden.md"))
    done = memory("purge", "documents/garden.md", "--confirm", "documents/garden")
    assert done.returncode == 2 and "nothing was purged" in done.stderr and "Rewriting" not in done.stderr
    assert memory("show", "documents/garden.md").returncode == 0


def test_export_writes_an_archive_once(memory: Run, tmp_path: Path) -> None:
    """The archive is whole; an existing file is not replaced without --force."""
    done = memory("export", "all.tar", "--json")
    said = json.loads(done.stdout)
    assert said["size"] == (tmp_path / "all.tar").stat().st_size
    with tarfile.open(tmp_path / "all.tar") as tar:
        assert {"README.txt", "memory/AGENT.md", "memory/.git/HEAD"} <= set(tar.getnames())
    again = memory("export", "all.tar")
    assert (again.returncode, "exists already" in again.stderr) == (1, True)
    assert memory("export", "all.tar", "--force").returncode == 0
    assert memory("export", "no/such/all.tar").returncode == 1
    assert [file.name for file in tmp_path.iterdir() if "part" in file.name] == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc, a folder that takes no file")
def test_an_export_says_where_it_cannot_be_written(memory: Run) -> None:
    """A folder that takes no file is named, with what to do, also when the archive is locked."""
    for lock in ((), ("--recipient", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p")):
        done = memory("export", "/proc/everything.tar", *lock)
        assert done.returncode == 1
        assert done.stderr.startswith("Error: /proc/everything.tar cannot be written: "), done.stderr
        assert "Hint: Choose another place" in done.stderr


def test_listing_shows_names(memory: Run) -> None:
    """Files with size, folders with a slash."""
    assert [line.split()[-1] for line in memory("list").stdout.splitlines()[1:]] == [
        "AGENT.md", "MEMORY.md", "identity/", "personalities/", "preferences.toml",
    ]  # fmt: skip


def test_a_change_is_shown_blamed_and_reverted(memory: Run, notes: Path) -> None:
    """History, difference and blame of a brought file, then one step back; each as a text and as JSON."""
    memory("add", str(notes / "garden.md"))
    (notes / "garden.md").write_text("# Garden\nThe climbing frame is red.\n")
    memory("add", str(notes / "garden.md"))
    path = "documents/garden.md"
    newest, first = json.loads(memory("history", path, "--json").stdout)
    assert "-The climbing frame is green.\n+The climbing frame is red.\n" in memory("diff", path).stdout
    assert json.loads(memory("diff", path, first["version"], "--json").stdout)["files"][0]["added"] == 1
    blamed = memory("blame", path).stdout.splitlines()
    assert blamed[1].startswith(newest["version"][:10]) and blamed[1].endswith(
        "   2  The climbing frame is red."
    )
    only = json.loads(memory("blame", path, "--lines", "1-1", "--json").stdout)
    assert [(span["first"], span["version"]) for span in only["spans"]] == [(1, first["version"])]
    done = memory("revert", path)
    assert done.stdout.startswith(f"Took back {newest['version'][:10]} as ")
    assert memory("show", path).stdout == "# Garden\nThe climbing frame is green.\n"
    back = json.loads(memory("revert", path, "--to", newest["version"], "--json").stdout)
    assert (back["undone"], back["paths"]) == (newest["version"], [path])


@pytest.mark.parametrize(
    "arguments",
    [
        ("revert",),
        ("revert", "a", "--version", "1", "--to", "2"),
        ("blame", "a", "--lines", "5-3"),
        ("blame",),
    ],
)
def test_wrong_usage_is_reported(arguments: tuple[str, ...], memory: Run) -> None:
    """Contradictory options are refused before memory receives a request."""
    assert memory(*arguments).returncode == 2


def test_search_explains_hits_and_stats_counts_files(memory: Run, notes: Path) -> None:
    """--why lists the signals; stats counts and reports that only words are searched; reindex rebuilds it."""
    memory("add", str(notes))
    found = memory("search", "climbing frames", "--why", "--kind", "document")
    assert "    words      + " in found.stdout and "climbing, frames" in found.stdout
    assert "Words alone were searched" in found.stderr
    stats = json.loads(memory("stats", "--json").stdout)
    assert stats["kinds"]["document"] == 2 and stats.get("vectors") is None
    anew = memory("reindex")
    assert anew.returncode == 0
    assert anew.stdout == memory("stats").stdout
    assert "words alone" in anew.stdout
    assert memory("search", "climbing", "--kind", "fact").returncode == 1


def test_an_embedder_that_is_not_there_is_named(memory: Run, tmp_path: Path) -> None:
    """A wrong ``[memory] embedder`` says what there is to choose from."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/trunkline.toml").write_text('[memory]\nembedder = "nobody"\n')
    found = memory("search", "x")
    assert found.returncode != 0
    assert "[memory] embedder is 'nobody'" in found.stderr


def test_the_memory_doctor_repairs_and_reports(memory: Run, tmp_path: Path) -> None:
    """An intact memory is reported as intact; for a damaged one the repairs are listed, and losses give the exit
    status 1."""
    (tmp_path / "a.md").write_text("one\n")
    memory("add", str(tmp_path / "a.md"))
    whole = memory("doctor")
    assert (whole.returncode, "ERROR" in whole.stdout, "memory.start" in whole.stdout) == (0, False, True)
    root = tmp_path / "home/memory"
    for file in (root / ".git/objects").glob("??/*"):
        if len(file.name) == 38:
            file.chmod(0o644)
            file.write_bytes(file.read_bytes()[:10])
    looked = json.loads(memory("doctor", "--no-repair", "--json").stdout)
    assert {"git.objects": "warning", "git.history": "warning"}.items() <= {
        finding["id"]: finding["status"] for finding in looked["findings"]
    }.items()
    done = memory("doctor")
    assert done.returncode == 1
    assert "REPAIRED  git.objects" in done.stdout
    assert "damaged" in done.stdout
    assert (root / "documents/a.md").read_text() == "one\n"
