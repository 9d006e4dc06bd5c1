"""Time to ready with plugins installed: 1, 50, and one bad one at a time. Started in turns, so load hits all alike."""

import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from benchmarks import deployments
from tests.plugins_bad.corpus import BAD, GOOD, install, install_bad, tool
from trunkline.config.editor import write_settings

Fill = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class StartTime:
    """Seconds of the clock, and of the processor: only the latter can be compared on a machine that others use."""

    clock: float
    processor: float


def many_plugins(count: int) -> Fill:
    """So many plugins that work, each with a tool of its own."""

    def fill(site: Path) -> None:
        site.mkdir(exist_ok=True)
        for number in range(count):
            install(site, f"plugin-{number}", tool(f"return '{number}'", name=f"tool_{number}"))

    return fill


def one_bad_plugin(dist: str) -> Fill:
    """A plugin that works and a bad one."""

    def fill(site: Path) -> None:
        install(site, "a-good", GOOD)
        install_bad(site, dist)

    return fill


def starts(
    fills: Mapping[str, Fill], settings: Mapping[str, object], rounds: int
) -> dict[str, list[StartTime]]:
    """Seconds to ready by name, of the clock and of the processor, of ``rounds`` starts each, after a first one on a
    fresh home that is not counted: it makes the repository, and waits for imports that never end."""
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder:
        home_folders = {
            name: _home(Path(folder) / f"{number}", fill, settings)
            for number, (name, fill) in enumerate(fills.items())
        }
        for home in home_folders.values():
            _start(home)
        taken: dict[str, list[StartTime]] = {name: [] for name in fills}
        for _ in range(rounds):
            for name, home in home_folders.items():
                taken[name].append(_start(home))
    return taken


def _home(folder: Path, fill: Fill, settings: Mapping[str, object]) -> Path:
    home = folder / "home"
    home.mkdir(parents=True)
    fill(folder / "site")
    write_settings(home / "trunkline.toml", dict(settings))
    return home


def _start(home: Path) -> StartTime:
    """Start ``trunkline up``, and return what it took until it said that it was ready."""
    before, began = dict(os.environ), perf_counter()
    os.environ["PYTHONPATH"] = str(home.parent / "site")
    try:
        process: subprocess.Popen[str] = deployments.start_trunkline(home)
    finally:
        os.environ.clear()
        os.environ.update(before)
    try:
        deployments.wait_until_ready(process)
        return StartTime(perf_counter() - began, _processor_seconds(process.pid))
    finally:
        process.terminate()
        process.wait()


def _processor_seconds(pid: int) -> float:
    import psutil

    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def rows(taken: Mapping[str, list[StartTime]], base: str) -> list[list[str]]:
    """The medians, and the processor's against that of the base."""

    def middle(name: str) -> StartTime:
        clock = statistics.median(one.clock for one in taken[name])
        return StartTime(clock, statistics.median(one.processor for one in taken[name]))

    whole = middle(base).processor
    return [
        [
            name,
            f"{middle(name).clock:.2f}",
            f"{middle(name).processor:.2f}",
            f"{middle(name).processor / whole:.2f}",
        ]
        for name in taken
    ]


HARMLESS = tuple(dist for dist, bad in BAD.items() if not bad.kills)
