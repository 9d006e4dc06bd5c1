"""``trunkline memory remember`` and the commands beside it: the input and the output, on a separate home."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.support.commands import Run, run_trunkline
from trunkline.testing.platform import make_block


@pytest.fixture
def memory(tmp_path: Path) -> Run:
    """Run ``trunkline memory ARGUMENTS``; ``stdin`` is its input. There is a block ``garden``."""
    make_block(tmp_path / "home" / "memory", ("memory",), "garden")
    return partial(run_trunkline, tmp_path / "home", "memory")


def test_a_chunk_from_the_command_line_to_the_purge(memory: Run, tmp_path: Path) -> None:
    """Remembered, recalled with why, linked, archived, listed, and purged when confirmed."""
    anna = memory("remember", "Anna works at the bakery", "--tag", "people").stdout.strip()
    other = memory("remember", "-", "--block", "garden", stdin="Anna is away on Mondays").stdout.strip()
    recalled = memory("recall", "anna bakery", "--why")
    assert recalled.stdout.startswith(f"{anna}  fact        0.70  Anna works at the bakery\n")
    assert "words" in recalled.stdout
    assert memory("link", other, "contradicts", anna).returncode == 0
    links = memory("chunks", "links", anna)
    assert links.stdout.startswith(f"<- contradicts 1.00 (by hand)  {other}")
    assert memory("chunks", "delete", anna).returncode == 0
    assert memory("chunks", "list").stdout.startswith(other)
    unasked = memory("purge", other)
    assert (unasked.returncode, "--confirm" in unasked.stderr) == (1, True)
    purged = json.loads(memory("purge", other, "--confirm", other, "--json").stdout)
    assert [path.rpartition("/")[2] for path in purged["paths"]] == [f"{other}.json"]
    assert "Note the purge" in memory("history").stdout
    assert not list((tmp_path / "home/memory").rglob(f"{other}.json"))


def test_bytes_that_are_no_text_are_not_remembered(memory: Run) -> None:
    """Piped input is stored unchanged or not at all: a sentence, status 2, and nothing is stored."""
    done = memory("remember", "-", stdin="a\udcffb")
    assert done.returncode == 2 and "not text in UTF-8" in done.stderr and not done.stdout
    listed = memory("chunks", "list")
    assert (listed.returncode, listed.stdout, listed.stderr) == (1, "", "There are no such chunks.\n")


def test_a_broken_chunk_is_named(memory: Run, tmp_path: Path) -> None:
    """Counting leaves with 1 and says which file is broken, and how; doctor says it as well."""
    file = tmp_path / "home/memory/chunks/2026-05-04/chunk-2026-05-04-00000000.json"
    file.parent.mkdir(parents=True)
    file.write_text("{")
    reported = memory("chunks", "stats")
    assert reported.returncode == 1
    assert "Broken (invalid_json): chunks/2026-05-04/chunk-2026-05-04-00000000.json" in reported.stderr
    doctor = run_trunkline(tmp_path / "home", "doctor", COLUMNS="200")
    assert "chunk-2026-05-04-00000000.json (invalid_json)" in doctor.stdout
