"""The output of ``trunkline memory purge``: a summary, then the removed items, then the kept ones in few whole
sentences."""

import json
import re
from pathlib import Path

from tests.support.commands import run_trunkline


def test_shared_boilerplate_is_not_reported_as_a_trace(tmp_path: Path) -> None:
    """Conversations that share only instructions, marks, help and descriptions of tools are not reported; one that
    repeats a person's words is reported once, for any number of places."""
    home = tmp_path / "home"
    for text in (
        "The combination of the safe is zebra seven four",
        "I repeat: The combination of the safe is zebra seven four",
        "hello",
        "/tool memory_read path=AGENT.md",
        "/tool memory_search query=nothing",
        "/tool",
    ):
        assert run_trunkline(home, "say", text).returncode == 0
    found = {one["title"]: one["id"] for one in listed(home)}
    gone = [id for title, id in found.items() if title.startswith("The combination")]
    other = [id for title, id in found.items() if title.startswith("I repeat")]
    for target in (*gone, *(id for title, id in found.items() if title.startswith(("Hello", "/tool")))):
        done = run_trunkline(home, "memory", "purge", target, "--confirm", target)
        first, _, kept = done.stdout.partition("\nKept:\n")
        assert first.startswith("1 file is gone with all versions"), done.stdout
        assert [line for line in kept.splitlines() if not re.fullmatch(r"\* .+: [A-Z].*\.", line)] == []
        reported = re.findall(r"conversation (conv_\w+): ", kept)
        assert reported == (other if target in gone else []), done.stdout
        assert not re.search(r"AGENT\.md|identity/|personalities/|JOURNAL: |EFFECT: |by this path", kept), (
            kept
        )


def listed(home: Path) -> list[dict[str, str]]:
    """The conversations."""
    found = json.loads(run_trunkline(home, "conversations", "list", "--json").stdout)
    return list(found["conversations"])
