"""The tables of ``python -m benchmarks.turn``, and the same figures as data. No measuring in here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.figures import milliseconds, table
from benchmarks.journal_cost import JournalCost
from benchmarks.load_rounds import TURNS_PER_CONVERSATION, LoadRound

SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

NOTE = f"""\
Every way is asked by the same client (httpx) in the same protocol (OpenAI's streamed chat completions); a client holds
a conversation for {TURNS_PER_CONVERSATION} turns, then begins another. Paced clients begin evenly spread \
over the length of a turn, in all ways.
What is added is the percentile of a way less the direct client's in the same round; every figure is the median of its
rounds. Client, model server, nats-server and workers share the cores."""


@dataclass(frozen=True, slots=True)
class TurnMeasurements:
    """All of a run. ``resident`` is in MiB, by way and process."""

    machine: str
    rounds: Sequence[LoadRound]
    resident: Mapping[str, Mapping[str, float]]
    journal: JournalCost

    def rounds_of(self, way: str, load: str, clients: int) -> list[LoadRound]:
        """The rounds of a cell, in the order in which they were run."""
        return [r for r in self.rounds if (r.way, r.load, r.clients) == (way, load, clients)]

    def median(self, way: str, load: str, clients: int, what: Callable[[LoadRound], float]) -> float:
        """The median over the rounds of a cell."""
        return median(map(what, self.rounds_of(way, load, clients)))

    def added_latency(self, way: str, load: str, clients: int, share: float) -> float:
        """Seconds to the first text more than directly in the same round; the median over the rounds."""
        pairs = zip(self.rounds_of(way, load, clients), self.rounds_of("direct", load, clients), strict=True)
        return median(one.at(share) - direct.at(share) for one, direct in pairs)

    @property
    def cells(self) -> list[tuple[str, int, str]]:
        """Load, clients and way of every cell."""
        return list(dict.fromkeys((r.load, r.clients, r.way) for r in self.rounds))

    @property
    def ways(self) -> list[str]:
        """The ways through Trunkline."""
        return list(self.resident)

    @property
    def others(self) -> float:
        """Cores that were busy with other things than this run."""
        return median(one.others for one in self.rounds)

    def saturation(self, way: str) -> tuple[float, int]:
        """The most turns a second in a round of the closed load, and with how many clients."""
        cells = {clients for load, clients, name in self.cells if (load, name) == ("closed", way)}
        return max((self.median(way, "closed", n, lambda r: r.rate), n) for n in cells)

    def cpu(self, way: str) -> dict[str, float]:
        """Seconds of CPU a turn by process, at saturation."""
        _, clients = self.saturation(way)
        names = self.rounds_of(way, "closed", clients)[0].cpu
        return {name: self.median(way, "closed", clients, lambda r, name=name: r.cpu[name]) for name in names}  # type: ignore[misc]


def report(run: TurnMeasurements) -> str:
    """All tables, as Markdown."""
    others = f"{run.others:.1f} cores were busy with other things meanwhile (median of the rounds)."
    return "\n\n".join(
        [f"{run.machine}. {others}", NOTE, _latency(run), _saturation(run), _processes(run), _journal(run)]
    )


def _latency(run: TurnMeasurements) -> str:
    rows = []
    for load, clients, way in sorted(run.cells, key=lambda cell: cell[:2]):
        added = [milliseconds(run.added_latency(way, load, clients, share)) for share in SHARES.values()]
        first = milliseconds(run.median(way, load, clients, lambda r: r.at(0.5)))
        rate = run.median(way, load, clients, lambda r: r.rate)
        rows.append([load, clients, way, first, *(["-"] * 3 if way == "direct" else added), f"{rate:.0f}"])
    head = ["load", "clients", "way", "first token p50 ms", *(f"added {name}" for name in SHARES), "turns/s"]
    return table(head, rows)


def _saturation(run: TurnMeasurements) -> str:
    rows = []
    for way in run.ways:
        rate, clients = run.saturation(way)
        rows.append([way, f"{rate:.0f}", clients, milliseconds(sum(run.cpu(way).values()))])
    return table(["at saturation", "turns/s", "clients", "CPU ms per turn, all processes"], rows)


def _processes(run: TurnMeasurements) -> str:
    rows = []
    for way in run.ways:
        for process, seconds in run.cpu(way).items():
            size = run.resident[way].get(process)
            rows.append([way, process, "-" if size is None else f"{size:.0f}", milliseconds(seconds)])
    return table(["way", "process", "resident MiB", "CPU ms per turn"], rows)


def _journal(run: TurnMeasurements) -> str:
    journal = run.journal
    cpu = journal.records * (journal.cpu_writer + journal.cpu_server)
    whole = sum(run.cpu(run.ways[-1]).values())
    rows = [
        ["records per turn", f"{journal.records:.1f}"],
        ["of these before the model is called", f"{journal.before:.1f}"],
        ["bytes per turn", f"{journal.size:.0f}"],
        ["wait per record, ms", milliseconds(journal.waited)],
        ["the same in memory, without the disk, ms", milliseconds(journal.waited_in_memory)],
        ["added to the first token, ms", milliseconds(journal.before * journal.waited)],
        ["CPU per turn, writer and server, ms", milliseconds(cpu)],
        ["share of a turn's CPU", f"{cpu / whole:.0%}"],
    ]
    return table(["cost of the journal", "value"], rows)


def data(run: TurnMeasurements) -> dict[str, Any]:
    """The same for programs. Times in seconds, sizes in MiB and bytes."""
    cells = [
        {
            "load": load,
            "clients": clients,
            "way": way,
            "turns_per_second": run.median(way, load, clients, lambda r: r.rate),
            "first_token": {
                n: run.median(way, load, clients, lambda r, s=s: r.at(s)) for n, s in SHARES.items()
            },  # type: ignore[misc]
            "added": {n: run.added_latency(way, load, clients, s) for n, s in SHARES.items()},
        }
        for load, clients, way in run.cells
    ]
    saturation = {
        way: {"turns_per_second": run.saturation(way)[0], "clients": run.saturation(way)[1]}
        for way in run.ways
    }
    journal = {name: getattr(run.journal, name) for name in JournalCost.__slots__}
    return {
        "machine": run.machine,
        "others_cores": run.others,
        "rounds": len(run.rounds) // len(run.cells),
        "cells": cells,
        "saturation": saturation,
        "cpu_seconds_per_turn": {way: run.cpu(way) for way in run.ways},
        "resident_mib": run.resident,
        "journal": journal,
    }
