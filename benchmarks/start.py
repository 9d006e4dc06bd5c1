"""``python -m benchmarks.start``: seconds from nothing to a platform that answers, and what it weighs.

The first start on a fresh home makes the repository and the streams; later ones find them.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks import deployments, machine, plugin_starts
from benchmarks.figures import table
from trunkline.config.editor import write_settings
from trunkline.testing.platform import clean_environ

HEAD = ("ready, s", "processor, s", "ratio to the first row")

SETTINGS = {
    "gateway.port": 0,
    "monitor.engine_port": 0,
    "channels.enabled": [],
    "telemetry.log_level": "warning",
}


def ready_seconds(home: Path) -> tuple[float, float]:
    """Start ``trunkline up``, wait until it is ready, and stop it. Returns seconds and resident MiB."""
    began = perf_counter()
    process = deployments.start_trunkline(home)
    try:
        deployments.wait_until_ready(process)
        return perf_counter() - began, machine.resident_mib(process.pid)
    finally:
        process.terminate()
        process.wait()


def say_seconds(home: Path) -> float:
    """``trunkline say`` without a running platform: start, answer, stop."""
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(home)}
    command = [sys.executable, "-m", "trunkline.cli.main", "say", "hello"]
    began = perf_counter()
    subprocess.run(command, env=environ, check=True, capture_output=True)
    return perf_counter() - began


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__.split("\n")[0])
    parser.add_argument("--starts", type=int, default=5, help="later starts to take the median of (5)")
    parser.add_argument(
        "--bad", action="store_true", help="time to ready beside each bad plugin of the corpus"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args()
    if given.bad:
        print(_beside_bad(given.starts))
        return
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder:
        home = Path(folder)
        write_settings(home / "trunkline.toml", SETTINGS)
        first, _ = ready_seconds(home)
        later = [ready_seconds(home) for _ in range(given.starts)]
        said = [say_seconds(home) for _ in range(given.starts)]
    figures = {
        "first start, s": first,
        "later start, s": statistics.median(seconds for seconds, _ in later),
        "trunkline say, whole, s": statistics.median(said),
        "resident when ready, MiB": statistics.median(size for _, size in later),
    }
    if given.json:
        print(json.dumps(figures))
    else:
        print(table(["figure", "value"], [[name, f"{value:.2f}"] for name, value in figures.items()]))
        taken = plugin_starts.starts(
            {"1": plugin_starts.many_plugins(1), "50": plugin_starts.many_plugins(50)}, SETTINGS, given.starts
        )
        print()
        print(table(["plugins", *HEAD], plugin_starts.rows(taken, "1")))


def _beside_bad(starts: int) -> str:
    """Time to ready with one bad plugin beside a good one, against a good one alone."""
    fills = {
        "none": plugin_starts.many_plugins(1),
        **{dist: plugin_starts.one_bad_plugin(dist) for dist in plugin_starts.HARMLESS},
    }
    return table(
        ["bad plugin", *HEAD], plugin_starts.rows(plugin_starts.starts(fills, SETTINGS, starts), "none")
    )


if __name__ == "__main__":
    main()
