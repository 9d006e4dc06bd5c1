"""``python -m benchmarks.effects``: calls of write tools struck at every boundary; none may have its effect twice.

Calls are held at a boundary of their way (the question, the plan, the ledger, the effect, the reply, the journal), then
real processes are killed or stopped, acknowledgements lost, turns cancelled, and so on. What was told of each call
is put before a judge that counts the effects outside. Exits with 1 and the evidence when a promise was broken.
"""

import argparse
import logging
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import anyio

from benchmarks.figures import progress, table
from tests.effects.effect_run import Verdict, play
from tests.effects.fault_plan import BOUNDARIES, KINDS
from tests.effects.outcome_checker import Case

HEAD = (
    "calls with a fault", "effect once", "effect never", "reported done", "reported not done", "reported unknown",
    "a worker died between start and end", "of these reported as unknown", "effect twice",
)  # fmt: skip

SHOWN = 20
"""Broken promises that are shown; all are in a file."""


def report(verdict: Verdict) -> str:
    """A table by boundary, one by fault, and the sums."""
    struck = [case for case in verdict.cases if case.struck]
    by_boundary = [[at, *_row([case for case in struck if case.boundary == at])] for at in BOUNDARIES]
    faults = sorted({case.fault for case in struck})
    by_fault = [[fault, *_row([case for case in struck if case.fault == fault])] for fault in faults]
    whole = ["all", *_row(struck)]
    broken = Counter(finding.sort for finding in verdict.findings)
    sums = [
        ("calls paused at a boundary", len(verdict.cases)),
        ("calls with a fault", len(struck)),
        *((sort, broken[sort]) for sort in ("doubled", "lost", "unreported", "false")),
    ]
    return "\n\n".join(
        (
            table(["boundary", *HEAD], [*by_boundary, whole]),
            table(["fault", *HEAD], [*by_fault, whole]),
            table(["", ""], sums),
        )
    )


def _row(cases: Sequence[Case]) -> list[object]:
    in_doubt = [case for case in cases if case.in_doubt]
    reported = Counter(_reported_outcome(case) for case in cases)
    share = f"{100 * sum(case.doubt for case in in_doubt) / len(in_doubt):.0f} %" if in_doubt else "-"
    return [
        len(cases), _count(case.effects == 1 for case in cases), _count(case.effects == 0 for case in cases),
        reported["done"], reported["not done"], reported["unknown"], len(in_doubt), share,
        _count(case.effects > 1 for case in cases),
    ]  # fmt: skip


def _reported_outcome(case: Case) -> str:
    if case.doubt:
        return "unknown"
    return "done" if case.outcome is not None and case.outcome.status == "ok" else "not done"


def _count(holds: Iterable[bool]) -> int:
    return sum(holds)


def _write_evidence(home: Path, verdict: Verdict) -> list[str]:
    """Write what was broken so far to a file, should this be ended; returns its lines."""
    lines = [f"{finding.sort} {finding.what}" for finding in verdict.findings]
    if lines:
        (home / "evidence.txt").write_text("\n".join(lines))
    return lines


def parse_order() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.effects",
        description=__doc__.split("\n")[0],
        epilog="10 000 injections take about a quarter of an hour on two cores.",
    )
    parser.add_argument("--injections", type=int, default=10_000, help="how many calls to strike (10000)")
    parser.add_argument("--seed", type=int, help="of the waves; drawn and printed by default")
    parser.add_argument("--seconds", type=float, default=3_600, help="begin no wave after this (3600)")
    parser.add_argument("--turns", type=int, default=40, help="turns held at once (40)")
    parser.add_argument("--calls", type=int, default=8, help="calls in each turn (8)")
    parser.add_argument("--keep", action="store_true", help="keep the home folder with the logs in any case")
    return parser.parse_args()


def main() -> None:
    """Run and print; exits with 1 when a promise was broken, or fewer were struck than asked for."""
    given = parse_order()
    seed = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    for ours in ("trunkline_bus", "asyncio"):  # the workers have logs
        logging.getLogger(ours).setLevel(logging.CRITICAL)
    home = Path(tempfile.mkdtemp(prefix=f"trunkline-effects-{seed}-"))
    began = time.monotonic()

    def tell(verdict: Verdict, said: str) -> None:
        progress(
            f"{verdict.injected}/{given.injections} struck, {len(verdict.findings)} broken; last: {said}"
        )

    async def proof() -> Verdict:
        size = (given.turns, given.calls)
        return await play(home, seed, KINDS, given.injections, size, tell, given.seconds)

    verdict = anyio.run(proof)
    progress("")
    print(f"{report(verdict)}\n\nseed {seed}, {time.monotonic() - began:.0f} s")
    if verdict.findings:
        shown = "\n".join(_write_evidence(home, verdict)[:SHOWN])
        print(f"\npromises were broken; evidence, logs and stores are kept in {home}\n{shown}")
        sys.exit(1)
    if given.keep:
        print(f"\nkept in {home}")
    else:
        shutil.rmtree(home, ignore_errors=True)
    if verdict.injected < given.injections:
        print(f"only {verdict.injected} of {given.injections} fitted into {given.seconds:g} s")
        sys.exit(1)


if __name__ == "__main__":
    main()
