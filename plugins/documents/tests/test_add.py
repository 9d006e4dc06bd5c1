"""``trunkline memory add`` with documents: the input, and the resulting content of memory."""

import json
import os
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import samples

from tests.support.commands import Run, run_trunkline
from trunkline.testing.platform import clean_environ


@pytest.fixture
def memory(tmp_path: Path) -> Run:
    """Runs ``trunkline memory ARGUMENTS``."""
    return partial(run_trunkline, tmp_path / "home", "memory")


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    """One sound file of every format, and one of each that is broken."""
    folder = tmp_path / "papers"
    (folder / "broken").mkdir(parents=True)
    sound = {
        "report.pdf": samples.pdf(["Sow in May.", "Water the runner beans daily."]),
        "letter.docx": samples.docx(),
        "harvest.xlsx": samples.xlsx(),
        "talk.pptx": samples.pptx(),
        "book.epub": samples.epub(),
        "page.html": samples.HTML.encode(),
        "rows.csv": b"plant,rows\nbeans,4\n",
        "data.json": b'{"beans": 4}',
        "code.py": b"def water():\n    pass\n",
        "notes.md": b"# Notes\n",
        "plain.txt": b"plain",
    }
    for name, data in sound.items():
        (folder / name).write_bytes(data)
        if name.endswith((".pdf", ".docx", ".xlsx", ".pptx", ".epub")):
            (folder / "broken" / name).write_bytes(b"\1\2\3 broken")
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Return memory's copies of them: plain files."""
    return tmp_path / "home/memory/documents/papers"


def test_every_format_is_added(memory: Run, papers: Path, kept: Path) -> None:
    """Text as it is, the others as Markdown that says where it comes from; a broken file of each kind is reported and
    skipped."""
    added = memory("add", str(papers))
    assert added.stdout == "Added 11 files under documents/, skipped 5.\n"
    reported = re.findall(r"Skipped .*/broken/(\S+): (it .+)", added.stderr)
    assert {name for name, _ in reported} == {
        "report.pdf", "letter.docx", "harvest.xlsx", "talk.pptx", "book.epub",
    }  # fmt: skip
    assert {file.name for file in kept.iterdir()} == {
        "report.pdf.md", "letter.docx.md", "harvest.xlsx.md", "talk.pptx.md", "book.epub.md", "page.html.md",
        "rows.csv", "data.json", "code.py", "notes.md", "plain.txt",
    }  # fmt: skip
    shown = (kept / "report.pdf.md").read_text()
    front, _, text = shown.removeprefix("---\n").partition("---\n")
    assert re.fullmatch(r"source: report.pdf\nsha256: [0-9a-f]{64}\nreader: pdf\npages: 2\n", front)
    assert text == "\n<!-- page 1 -->\n\nSow in May.\n\n<!-- page 2 -->\n\nWater the runner beans daily.\n"
    assert (kept / "rows.csv").read_text() == "plant,rows\nbeans,4\n"
    (hit, *_) = json.loads(memory("search", "runner beans daily", "--kind", "document", "--json").stdout)
    assert (hit["path"], hit["page"]) == ("documents/papers/report.pdf.md", 2)


def test_only_changed_files_are_read_again(memory: Run, papers: Path, kept: Path) -> None:
    """A second run reads nothing; a changed file is brought, a removed one is reported and pruned when asked."""
    memory("add", str(papers))
    again = memory("add", str(papers))
    assert again.stdout == "Added 0 files, left unchanged 11, skipped 5.\n"
    (papers / "report.pdf").write_bytes(samples.pdf(["Sow in April."]))
    (papers / "notes.md").write_text("# Other notes\n")
    (papers / "plain.txt").unlink()
    (papers / "book.epub").unlink()
    said = json.loads(memory("add", str(papers), "--json").stdout)
    assert sorted(said["added"]) == ["documents/papers/notes.md", "documents/papers/report.pdf.md"]
    assert said["gone"] == ["documents/papers/book.epub.md", "documents/papers/plain.txt"]
    assert (kept / "plain.txt").exists()
    pruned = json.loads(memory("add", str(papers), "--prune", "--json").stdout)
    assert pruned["removed"] == said["gone"]
    assert not (kept / "plain.txt").exists()
    log = ["git", "-C", str(kept), "log", "--format=%h", "--", "report.pdf.md"]
    assert len(subprocess.run(log, capture_output=True, text=True, check=True).stdout.split()) == 2


def test_two_files_with_the_same_name_in_memory_are_reported(memory: Run, tmp_path: Path) -> None:
    """The second does not silently replace the first."""
    folder = tmp_path / "twice"
    folder.mkdir()
    (folder / "a.html").write_text("<p>one</p>")
    (folder / "a.html.md").write_text("two")
    added = memory("add", str(folder), str(folder / "a.html"))
    assert "another file takes its place" in added.stderr


def test_an_undecodable_file_name_is_skipped_and_reported(memory: Run, tmp_path: Path) -> None:
    """Beside it everything is brought, and the report shows its bytes in one line, also as JSON."""
    folder = tmp_path / "names"
    folder.mkdir()
    for name in (b"good.txt", b"b\xff.txt", b"two\nlines.txt"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("zebra")
    done = memory("add", str(folder), "--json")
    reported = json.loads(done.stdout)
    assert done.returncode == 0 and reported["added"] == ["documents/names/good.txt"]
    names = {one["file"].rpartition("/")[2]: one["reason"] for one in reported["skipped"]}
    assert set(names) == {"b\\xff.txt", "two\\nlines.txt"} and "UTF-8" in names["b\\xff.txt"]
    alone = memory("add", os.fsdecode(os.fsencode(folder) + b"/b\xff.txt"))
    assert alone.returncode == 1 and "b\\xff.txt: its name is not valid UTF-8" in alone.stderr


MEASURE = """\
import resource, subprocess, sys
subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""Runs a command and prints its largest resident set in KiB. The kernel counts the memory of the process that starts a
program as the program's own, so a small process starts it, not pytest."""


def begun(home: Path, folder: Path, stdout: int, through: tuple[str, ...] = ()) -> "subprocess.Popen[bytes]":
    """``trunkline memory add FOLDER``, under way."""
    argv = [*through, sys.executable, "-m", "trunkline.cli.main", "memory", "add", str(folder)]
    env = {**clean_environ(), "TRUNKLINE_HOME": str(home)}
    return subprocess.Popen(argv, env=env, stdout=stdout, stderr=subprocess.DEVNULL)


def test_a_thousand_files_are_added_by_one_command(memory: Run, tmp_path: Path) -> None:
    """Text, web pages and PDFs together, a broken one among them; all are found then."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(1_000):
        if number % 10 == 0:
            (folder / f"{number}.pdf").write_bytes(samples.pdf([f"Paper number {number}"]))
        elif number % 10 == 1:
            (folder / f"{number}.html").write_text(f"<h1>Page {number}</h1><p>About bean {number}.</p>")
        else:
            (folder / f"{number}.md").write_text(f"note {number}")
    (folder / "510.pdf").write_bytes(b"broken")
    with begun(
        tmp_path / "home", folder, stdout=subprocess.PIPE, through=(sys.executable, "-c", MEASURE)
    ) as adding:
        assert adding.stdout is not None
        text, kilobytes = adding.stdout.read().splitlines()
    assert text == b"Added 999 files under documents/, skipped 1."
    found = memory("search", "Paper number 780", "--limit", "1")
    assert found.stdout.startswith("documents/many/780.pdf.md:")
    assert int(kilobytes) < 300 * 1024


def test_a_killed_command_continues_where_it_stopped(memory: Run, tmp_path: Path) -> None:
    """Files acknowledged before a SIGKILL are in history; the same command adds the rest and none twice."""
    folder, held = tmp_path / "many", tmp_path / "home/memory/documents/many"
    folder.mkdir()
    for number in range(600):
        (folder / f"{number}.html").write_text(f"<p>Page {number}</p>")
    with begun(tmp_path / "home", folder, stdout=subprocess.DEVNULL) as first:
        deadline = time.monotonic() + 60
        while not (held.is_dir() and any(held.iterdir())) and first.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        first.kill()
    said = json.loads(memory("add", str(folder), "--json").stdout)
    assert len(said["added"]) + len(said.get("unchanged", [])) == 600
    assert len(list(held.iterdir())) == 600
    subprocess.run(["git", "-C", str(held), "fsck", "--strict"], check=True, capture_output=True)


def test_a_dropped_in_reader_adds_a_format(memory: Run, tmp_path: Path) -> None:
    """A file in tool_sources with a reader is a format more, read apart like the others."""
    drop = tmp_path / "home" / "drop"
    drop.mkdir(parents=True)
    (drop / "subtitles.py").write_text(
        "import os, trunkline\n"
        "from trunkline.api.documents import Document, Reader, Section\n"
        "class Subtitles(Reader):\n"
        "    name = 'subtitles'\n"
        "    suffixes = ('.srt',)\n"
        "    def read(self, file, name):\n"
        "        said = [line for line in file.read().decode().splitlines() if line[:1].isalpha()]\n"
        "        return Document(sections=(Section(text=' '.join(said)),))\n"
        "@trunkline.hookimpl\n"
        "def trunkline_readers():\n"
        "    return [Subtitles()]\n"
    )
    (tmp_path / "home" / "trunkline.toml").write_text('[runtime]\ntool_sources = ["drop"]\n')
    (tmp_path / "film.srt").write_text("1\n00:01 --> 00:02\nWater the beans.\n")
    assert memory("add", str(tmp_path / "film.srt")).stdout == "Added 1 file under documents/.\n"
    written = tmp_path / "home/memory/documents/film.srt.md"
    assert written.read_text().endswith("---\n\nWater the beans.\n")
