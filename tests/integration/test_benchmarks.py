"""The measuring commands in short form: each runs, and prints every figure that the long form prints.

Nothing is said here about how good the figures are: speed is measured, not tested. Most commands run in this process,
whose workers are forked (``tests.support.fork_server``); one that changes its environment is a process of its own.
"""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
THROUGH = {"one process", "process per worker"}


Printed = Callable[..., str]


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Printed:
    """Run the command of a module with these arguments, and return what it prints."""

    def run(module: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [module, *arguments])
        assert not importlib.import_module(module).main()
        return capsys.readouterr().out

    return run


@pytest.fixture
def figures(printed: Printed) -> Callable[..., Any]:
    """The same, and return the figures that the command prints as JSON."""
    return lambda *command: json.loads(printed(*command, "--json"))


def test_a_turn_is_measured_in_every_way(figures: Callable[..., Any]) -> None:
    """Both loads, every number of clients, all ways: latency, saturation, CPU and memory of each process, and the
    journal's cost."""
    run = figures("benchmarks.turn", "--quick")
    cells = {(cell["load"], cell["clients"], cell["way"]) for cell in run["cells"]}
    assert cells == {
        (load, n, way) for load in ("closed", "paced") for n in (1, 4) for way in {"direct", *THROUGH}
    }
    for cell in run["cells"]:
        assert cell["turns_per_second"] > 0 and set(cell["added"]) == {"p50", "p95", "p99"}
        assert cell["first_token"]["p50"] > (0.2 if cell["load"] == "paced" else 0)
        assert cell["way"] != "direct" or set(cell["added"].values()) == {0}
    assert set(run["saturation"]) == set(run["resident_mib"]) == THROUGH
    workers = {"gateway", "monitor", "tools", "memory", "nats-server"}
    assert set(run["resident_mib"]["process per worker"]) == workers
    assert set(run["cpu_seconds_per_turn"]["process per worker"]) == {*workers, "client", "model"}
    assert run["journal"]["records"] >= run["journal"]["before"] >= 1 and run["journal"]["waited"] > 0


def test_the_tokens_of_many_tools_are_counted(figures: Callable[..., Any]) -> None:
    """All shown and found, by turn, and how well tools are found."""
    found = figures("benchmarks.discovery", "--tools", "5", "60", "--turns", "3")
    assert set(found["figures"]) == {f"{n}, {way}" for n in (5, 60) for way in ("all sent", "discovery")}
    assert all(0 < turn["cached"] < turn["tokens"] for turns in found["figures"].values() for turn in turns)
    first = {name: turns[0]["tokens"] for name, turns in found["figures"].items()}
    assert first["60, discovery"] < first["60, all sent"] and first["5, discovery"] > first["5, all sent"]
    assert found["default"]["tools"] <= 12 and found["default"]["tokens"] <= 2_500
    assert sum(0 < place <= 20 for place in found["places"]) > 0.9 * len(found["places"])


def test_a_split_task_is_measured_in_both_orders(figures: Callable[..., Any]) -> None:
    """Both turns ask the model as often: a route, a split, the steps and the joined answer."""
    found = figures("benchmarks.orchestrator", "--steps", "3", "--pause", "0.05")
    assert [turn["way"] for turn in found] == ["at once", "one after the other"]
    assert {turn["requests"] for turn in found} == {6}
    assert all(turn["seconds"] >= turn["least"] for turn in found)


def test_the_cost_of_a_child_turn_is_measured(figures: Callable[..., Any]) -> None:
    """The turns with and without a child, the parts of the child, and its cost in plain turns."""
    found = figures("benchmarks.agents", "--turns", "2")
    for kind in ("wall", "cpu"):
        assert {name: len(seconds) for name, seconds in found[kind].items()} == {
            "plain": 2,
            "with a call": 2,
            "with a child": 2,
        }
    assert len(found["parts"]) == 4 and all(min(seconds) >= 0 for seconds in found["parts"].values())
    assert set(found["ratio"]) == {"wall", "cpu"}


def test_the_tokens_of_a_long_conversation_are_counted(figures: Callable[..., Any]) -> None:
    """As shipped, with whole results and in a naive loop, which bills more; every fact is answered in each way."""
    found = figures("benchmarks.compaction", "--turns", "60")
    assert set(found) == {"as shipped", "whole results", "naive loop", "ratios"}
    ways = [found[way] for way in ("as shipped", "whole results", "naive loop")]
    assert all(way["answered"] == way["facts"] == sum(way["sources"].values()) for way in ways)
    assert all(0 < way["cached"] < way["tokens"] and way["billed"] < way["tokens"] for way in ways)
    assert found["as shipped"]["billed"] < found["naive loop"]["billed"]
    assert found["as shipped"]["too_long_from"] is None


def test_memory_is_watched_over_many_turns(printed: Printed) -> None:
    """The size of each process at each tenth, and a verdict for each over the second half."""
    lines = printed("benchmarks.turn", "--turns", "40").splitlines()
    assert [line.split("|")[1].strip() for line in lines if line.startswith("| ")] == [
        "turns", *map(str, range(0, 41, 4)), "second half",
    ]  # fmt: skip
    verdicts = [cell.strip() for cell in lines[-1].split("|")[2:-1]]
    assert len(verdicts) == 5 and all(one == "flat" or one.startswith("+") for one in verdicts)


def test_the_cost_of_durability_is_measured(figures: Callable[..., Any]) -> None:
    """Writes synced and not, in file and memory, on one server and three; and turns with a knob beside its default."""
    run = figures("benchmarks.durability", "--quick", "--knob", "bus.feed_storage")
    assert len(run["writes"]) == 8 and all(0 < write["p50"] <= write["p99"] for write in run["writes"])
    assert {"3 servers, sync always, 3 replicas", "1 server, sync always, file"} <= {
        w["name"] for w in run["writes"]
    }
    assert [(turn["knob"], turn["choice"]) for turn in run["turns"]] == [("bus.feed_storage", "memory")]
    assert run["turns"][0]["rate_ratio"] > 0 and run["turns"][0]["cpu_ratio"] > 0


def test_a_click_is_measured(figures: Callable[..., Any]) -> None:
    """From the decision to the resumed turn and to the call's result, with others waiting."""
    run = figures("benchmarks.approvals", "--pending", "3", "--clicks", "2")
    assert {name: len(seconds) for name, seconds in run.items()} == {"list": 2, "resumed": 2, "ran": 2}
    assert all(0 < resumed <= ran for resumed, ran in zip(run["resumed"], run["ran"], strict=True))


def test_a_preemption_is_measured(figures: Callable[..., Any]) -> None:
    """From a person's message to the preemption and to the first text, and the waiting of a background turn."""
    run = figures("benchmarks.lanes", "--messages", "2", "--background", "1")
    assert {name: len(seconds) for name, seconds in run.items()} == {
        "preempted": 2,
        "first text": 2,
        "background turn": 1,
    }
    assert all(
        0 < preempted <= text for preempted, text in zip(run["preempted"], run["first text"], strict=True)
    )


def test_many_decisions_in_one_turn_are_measured(figures: Callable[..., Any]) -> None:
    """The cost of an approval is measured in each quarter of the turn."""
    quarters = figures("benchmarks.approvals", "--calls", "5")
    assert len(quarters) == 4 and all(cost > 0 for cost in quarters)


def test_a_flood_is_measured_with_other_traffic(figures: Callable[..., Any]) -> None:
    """The results, the duration, and the delay of other messages are measured."""
    (found,) = figures("benchmarks.floods", "queued", "--share", "0.003")
    assert "accepted" in found["outcome"]
    assert found["ready"] in (200, 503) and found["seconds"] > 0 and found["others"] > 0


def test_many_calls_and_many_steps_are_measured(figures: Callable[..., Any]) -> None:
    """The cost of a call for each number of calls in an answer, and of a step in each quarter of a turn."""
    found = figures("benchmarks.calls", "--calls", "5", "20", "--steps", "8")
    assert [one["calls"] for one in found["calls"]] == [5, 20]
    assert all(one["cpu_per_call"] > 0 and one["seconds"] > 0 for one in found["calls"])
    assert len(found["steps"]) == 4 and all(cost > 0 for cost in found["steps"])


def test_every_request_that_leaves_is_checked(figures: Callable[..., Any]) -> None:
    """Each scenario over both protocols: requests left, and the vendor would have refused none."""
    rows = figures("benchmarks.transcripts")
    assert {row["protocol"] for row in rows} == {"chat", "responses"} and len(rows) == 16
    assert all(row["requests"] > 1 and not row["faults"] for row in rows)


def test_sockets_and_their_viewers_are_measured(figures: Callable[..., Any]) -> None:
    """The memory of an idle socket, and the delay of each piece of text to each viewer."""
    found = figures("benchmarks.websockets", "--sockets", "20", "--viewers", "3", "--turns", "1")
    assert found["pieces"] >= 3 and found["fan_out_p50"] <= found["fan_out_p95"] <= found["fan_out_max"]
    assert "idle_kb" in found


def test_twenty_viewers_of_a_turn_are_measured(figures: Callable[..., Any]) -> None:
    """How late each kind of viewer shows the words of an answer."""
    late = figures("benchmarks.fan_out", "--words", "40", "--turns", "1")
    assert set(late) == {"SSE", "WebSocket", "terminal", "Telegram", "Discord"}
    assert all(
        len(late[kind]) == 40 * count for kind, count in (("terminal", 3), ("Telegram", 4), ("Discord", 3))
    )


def test_a_channel_is_measured_beside_a_turn_without_it(figures: Callable[..., Any]) -> None:
    """Messages a second, the time to the first text, and the memory of chats."""
    found = figures("benchmarks.channels", "--chats", "5", "--updates", "2")
    assert found["per_second"] > 0 and found["direct_per_second"] > 0 and found["share_of_direct"] > 0
    assert found["bare_first_text"] > 0 and found["first_text"] > 0 and found["direct_first_text"] > 0
    assert "mib_per_1000_chats" in found


def test_random_kills_of_a_channel_are_counted(printed: Printed) -> None:
    """The kills, messages, and what was lost and repeated, of the channel that is named."""
    lines = printed("benchmarks.chaos", "--channel", "webhook", "--kills", "2").splitlines()
    assert [cell.strip() for cell in lines[-1].split("|")[1:-1]] == ["webhook", "2", "6", "0", "0"]


def test_what_adapters_add_is_measured() -> None:
    """The processor time of each token, with the SDK and with the adapter, for every vendor; what the import weighs."""
    command = [sys.executable, "-m", "benchmarks.adapters", "--quick", "--json"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr
    run = json.loads(ran.stdout)
    vendors = {"OpenAI, Responses", "OpenAI, Chat Completions", "Anthropic", "Gemini", "Ollama", "Bedrock"}
    assert {row["vendor"] for row in run["tokens"]} == vendors
    assert all(row["sdk"] > 0 and row["adapter"] > 0 and row["ratio"] > 0 for row in run["tokens"])
    assert set(run["import"]) == {"python", "import trunkline"}
