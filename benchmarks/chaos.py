"""``python -m benchmarks.chaos``: every worker and the server struck at random while people talk; nothing may be lost.

Each accepted message is answered exactly once, no effect happens twice, and every client's stream joins, or the
program exits with 1, says the seed and the evidence, and keeps the logs.
"""

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

import anyio
from tests.chaos.driver import Order, Outcome, run
from tests.chaos.evidence import evidence

from benchmarks.chaos_report import report
from trunkline.testing.scripted_provider import provider_process


def show(text: str) -> None:
    """Progress, on one line where there is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
    else:
        sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def storm(order: Order, home: Path) -> Outcome:
    """One run, with a model of its own."""
    with provider_process() as provider:
        outcome = anyio.run(run, order, home, provider, show)
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    return outcome


def main() -> None:
    """Run and print; exits with 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=100, help="how many faults (100)")
    parser.add_argument("--seed", type=int, help="of faults and talk; drawn and printed by default")
    parser.add_argument("--seconds", type=float, default=36_000, help="strike no longer than this")
    parser.add_argument("--people", type=int, default=6, help="conversations at once (6)")
    parser.add_argument("--pause", type=float, default=1.5, help="seconds between faults on average (1.5)")
    parser.add_argument("--keep", action="store_true", help="keep the home folder with the logs in any case")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    home = Path(tempfile.mkdtemp(prefix=f"trunkline-chaos-{seed}-"))
    order = Order(seed, given.kills, given.seconds, people=given.people, pause=given.pause)
    outcome = storm(order, home)
    print(report(outcome))
    if outcome.broken:
        print(f"\nseed {seed}: promises were broken; logs and stores are kept in {home}\n{evidence(outcome)}")
        (home / "evidence.txt").write_text(evidence(outcome))
        sys.exit(1)
    if given.keep:
        print(f"\nkept in {home}")
    else:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
