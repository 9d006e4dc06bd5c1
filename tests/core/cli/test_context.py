"""``trunkline context``: what the model saw in a conversation, also after the platform has ended."""

import json
import subprocess
from collections.abc import Callable

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_the_context_of_the_last_turn_is_shown_part_by_part(trunkline: Run) -> None:
    """As a table with the size of each part, and with the texts if they are asked for. No platform runs, and none of
    its monitors is started. The offline model has searched memory before it answers."""
    trunkline("say", "Where are the beans?")
    trunkline("say", "And the peas?", "--conversation", "last")
    shown = trunkline("context", "last")
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("turn turn_") and lines[0].endswith("model call 1  offline")
    parts = [line.split("  ")[-1].strip() for line in lines[4:]]
    assert {"bootstrap line", "history (4)", "message", "answers and results of this turn (2)"} <= {*parts}
    assert "Where are the beans?" not in shown.stdout
    texts = trunkline("context", "1", "--text").stdout
    assert "Where are the beans?" in texts and "Read AGENT.md for your instructions." in texts


def test_the_context_of_a_named_turn_is_printed_as_json(trunkline: Run) -> None:
    """The tokens of the parts add up to what the model counted, or are estimates."""
    first = json.loads(trunkline("say", "--json", "Where are the beans?").stdout)
    trunkline("say", "And the peas?", "--conversation", "last")
    found = json.loads(trunkline("context", "last", "--turn", first["turn"], "--json", "--text").stdout)
    assert (found["turn"], found["step"]) == (first["turn"], 1)
    assert [part["text"] for part in found["parts"] if part["kind"] == "message"] == ["Where are the beans?"]
    assert not any(part["kind"] == "history" for part in found["parts"])
    assert all(part["tokens"] >= 0 for part in found["parts"])


def test_a_context_that_is_not_there_is_named_in_the_error(trunkline: Run) -> None:
    """An unknown conversation, and a turn without a model."""
    trunkline("say", "/tool current_time")
    asked = trunkline("context", "last")
    assert asked.returncode == 1 and "No turn of the conversation asked a model" in asked.stderr
    unknown = trunkline("context", "conv_1")
    assert unknown.returncode == 1 and "no conversation whose id begins with 'conv_1'" in unknown.stderr
    turn = trunkline("context", "last", "--turn", "turn_x")
    assert turn.returncode == 1 and "There is no turn 'turn_x'" in turn.stderr
