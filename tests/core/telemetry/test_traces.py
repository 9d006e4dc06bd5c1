"""Traces of real processes: in the bus, drawn by the command line, and at a collector."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from trunkline.testing.platform import clean_environ

sys.path.insert(0, str(Path(__file__).parent))

from collector import collector


def trunkline(home: Path, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    variables = {**clean_environ(), "TRUNKLINE_HOME": str(home), **environ}
    command = [sys.executable, "-m", "trunkline.cli.main", *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=110, check=False)


def test_the_last_turn_is_drawn_from_the_root_down(tmp_path: Path) -> None:
    """One tree: the accepted message, the agent, the model call, the tool, the storing, with times."""
    assert trunkline(tmp_path, "say", "When are runner beans sown?").returncode == 0
    drawn = trunkline(tmp_path, "trace", "last")
    assert drawn.returncode == 0, drawn.stderr
    head, *tree = drawn.stdout.splitlines()
    assert head.startswith("turn turn_") and "trace " in head
    names = [line.split("ms", 1)[1] for line in tree]
    for part in ("invoke_agent main", "chat", "execute_tool memory_search", "store conversation"):
        assert any(part in name for name in names), drawn.stdout
    roots = [name for name in names if "─" not in name]
    assert len(roots) == 1, drawn.stdout


def test_a_turn_is_drawn_as_json_for_scripts(tmp_path: Path) -> None:
    """All spans carry the same trace id."""
    said = trunkline(tmp_path, "say", "hello", "--json")
    turn = json.loads(said.stdout)["turn"]
    spans = json.loads(trunkline(tmp_path, "trace", turn, "--json").stdout)
    assert len({span["trace_id"] for span in spans}) == 1 and len(spans) > 5


@pytest.mark.parametrize("turn", ["last", "turn_unknown", "no such turn"])
def test_an_unknown_turn_is_reported_in_one_sentence(turn: str, tmp_path: Path) -> None:
    """No traceback, exit status 1, and what to do."""
    drawn = trunkline(tmp_path, "trace", turn)
    assert drawn.returncode == 1 and "There is no turn" in drawn.stderr and "Traceback" not in drawn.stderr


def test_a_collector_gets_the_spans_by_the_standard_variable(tmp_path: Path) -> None:
    """OTEL_EXPORTER_OTLP_ENDPOINT is all it takes. A process that leaves gives its collector two seconds, so on a busy
    machine one of three has to get through."""
    with collector() as taken:
        for _ in range(3):
            said = trunkline(tmp_path, "say", "hello", OTEL_EXPORTER_OTLP_ENDPOINT=taken.address)
            assert said.returncode == 0
            if "invoke_agent main" in {span.name for span in taken.spans}:
                break
    assert "invoke_agent main" in {span.name for span in taken.spans}


def test_content_is_not_in_traces_by_default(tmp_path: Path) -> None:
    """No span contains message text."""
    trunkline(tmp_path, "say", "my secret is tulip")
    assert "tulip" not in trunkline(tmp_path, "trace", "last", "--json").stdout


def test_traces_can_be_turned_off(tmp_path: Path) -> None:
    """Then the command says why there is nothing to draw."""
    trunkline(tmp_path, "say", "hello", TRUNKLINE_TELEMETRY__TRACES="false")
    drawn = trunkline(tmp_path, "trace", "last")
    assert drawn.returncode == 1 and "has no trace" in drawn.stderr and "traces = true" in drawn.stderr


def test_a_collector_that_never_answers_is_not_waited_for(tmp_path: Path) -> None:
    """It takes connections and says nothing, and the exporter would wait ten minutes for it. The process ends all the
    same, and its log says, once for each signal, that something is missing at the collector."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_TIMEOUT": "600"}
        said = trunkline(tmp_path, "say", "hello", **environ)
    assert said.returncode == 0, said.stderr
    logged = "".join(file.read_text() for file in (tmp_path / "logs").rglob("*") if file.is_file())
    assert logged.count("the last spans are dropped") == 1
    assert logged.count("the last metrics are dropped") == 1


def test_an_unreachable_collector_delays_nothing(tmp_path: Path) -> None:
    """The turn is answered without delay."""
    with collector() as taken:
        closed = taken.address
    said = trunkline(
        tmp_path, "say", "hello", OTEL_EXPORTER_OTLP_ENDPOINT=closed, OTEL_EXPORTER_OTLP_TIMEOUT="1"
    )
    assert said.returncode == 0 and os.linesep in said.stdout
