"""``trunkline say``: where its text comes from, and who answers it."""

import subprocess
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_piped_text_is_added_on_request(trunkline: Run) -> None:
    """``-`` after the text adds it. Without ``-`` it stays in the pipe, because it may be that of a loop around the
    command, and a note says so."""
    both = trunkline("say", "Read this", "-", stdin="zebras graze")
    assert "zebras" in both.stdout and both.stderr.count("Note:") == 0, both.stderr
    left = trunkline("say", "Read this", stdin="zebras graze")
    assert left.returncode == 0 and "zebras" not in left.stdout
    assert "Note: what is piped in is not sent." in left.stderr
    assert "Note:" not in trunkline("say", "Read this").stderr


def test_a_model_is_chosen_for_one_message(trunkline: Run) -> None:
    """A model that cannot be had is refused before anything is sent."""
    refused = trunkline("say", "hello", "--model", "offline/nosuch")
    assert refused.returncode == 1 and "lists no model" in refused.stderr
    assert '"total": 0' in trunkline("conversations", "--json").stdout
    assert trunkline("say", "hello", "--model", "offline/offline").returncode == 0


def test_a_conversation_is_not_named_after_a_command_about_itself(trunkline: Run) -> None:
    """The first message that says something names it."""
    assert trunkline("say", "/compact").returncode == 0
    assert trunkline("say", "Plant the beans.", "--conversation", "last").returncode == 0
    assert "Plant the beans" in trunkline("conversations").stdout


def test_the_trace_is_drawn_although_a_section_is_misspelled(trunkline: Run, home: Path) -> None:
    """The trace is needed to find out what is wrong. Whatever runs an agent is refused still."""
    trunkline("say", "hello")
    (home / "trunkline.toml").write_text("[plugins.budgets]\nmax_daily_spend = 1\n")
    drawn = trunkline("trace", "last")
    assert drawn.returncode == 0 and "invoke_agent main" in drawn.stdout, drawn.stderr
    assert "Did you mean plugins.budget?" in trunkline("say", "hello").stderr
