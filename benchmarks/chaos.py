"""``python -m benchmarks.chaos``: every worker and the server struck at random while people talk; nothing may be lost.

Each accepted message is answered exactly once, no effect happens twice, and every client's stream joins, or the
program exits with 1, says the seed and the evidence, and keeps the logs.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from pathlib import Path

import anyio

from benchmarks import channel_kills
from benchmarks.chaos_report import figures, report
from tests.chaos.chaos_run import Order, Outcome, run
from tests.chaos.disks import why_not
from tests.chaos.evidence import evidence
from tests.chaos.platform_processes import Setting
from trunkline.testing.scripted_provider import provider_process

SETTLE, SETTLE_MIXED = 60.0, 300.0
"""Seconds within which everything must have ended after the last fault. A mixed run has queues of its own."""


def show_progress(text: str) -> None:
    """Progress, on one line where there is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
    else:
        sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def run_chaos(order: Order, home: Path) -> Outcome:
    """One run, with a model of its own."""
    with provider_process() as provider:
        outcome = anyio.run(run, order, home, provider, show_progress)
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    return outcome


def parse_order() -> tuple[Order, bool, bool]:
    """What the command line asks for, whether to keep the home folder, and whether to print JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chaos",
        description=__doc__.split("\n")[0],
        epilog="1 000 faults take most of an hour. Needs root for --full-disk only.",
    )
    parser.add_argument("--kills", type=int, default=100, help="how many faults (100)")
    parser.add_argument("--seed", type=int, help="of faults and talk; drawn and printed by default")
    parser.add_argument("--seconds", type=float, default=7_200, help="strike no longer than this (7200)")
    parser.add_argument("--people", type=int, default=6, help="conversations at once (6)")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between faults on average (1.0)")
    parser.add_argument(
        "--pile", type=float, default=0.5, help="share of faults that strike while others are down (0.5)"
    )
    parser.add_argument("--cluster", type=int, default=1, metavar="N", help="so many servers, R=N (1)")
    parser.add_argument(
        "--mixed",
        action="store_true",
        help="people's turns give tasks to agents; schedules and workflows run, too",
    )
    scene = parser.add_mutually_exclusive_group()
    scene.add_argument(
        "--rolling", type=int, metavar="N", help="N restarts in good order, one after the other"
    )
    scene.add_argument("--full-disk", action="store_true", help="fill the disks of bus and memory instead")
    scene.add_argument(
        "--only",
        choices=("kill", "stop", "drain", "cut"),
        help="only this kind of fault, such as kill: SIGKILL",
    )
    parser.add_argument("--channel", metavar="NAME", help="kill the process of a channel (or of all) instead")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--keep", action="store_true", help="keep the home folder with the logs in any case")
    given = parser.parse_args()
    if given.full_disk and (reason := why_not()):
        parser.exit(2, f"--full-disk cannot run here: {reason}\n")
    seed = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    order = Order(
        seed,
        given.rolling or given.kills,
        given.seconds,
        people=given.people,
        pause=given.pause,
        pile=given.pile,
        rolling=given.rolling is not None,
        only=given.only,
        mixed=given.mixed,
        settle=SETTLE_MIXED if given.mixed else SETTLE,
        setting=Setting(given.cluster, given.full_disk),
    )
    return order, given.keep, given.json


def main() -> None:
    """Run and print; exits with 1 when a promise was broken."""
    if any(word.partition("=")[0] == "--channel" for word in sys.argv):
        return channel_kills.main()
    order, keep, as_json = parse_order()
    home = Path(tempfile.mkdtemp(prefix=f"trunkline-chaos-{order.seed}-"))
    outcome = run_chaos(order, home)
    print(json.dumps(figures(outcome)) if as_json else report(outcome))
    if outcome.struck < order.faults:
        show_progress(f"only {outcome.struck} of {order.faults} faults fitted into {order.seconds:g} s\n")
    if outcome.broken:
        (home / "evidence.txt").write_text(evidence(outcome))
        print(
            f"\nseed {order.seed}: promises were broken; logs and stores are kept in {home}\n{evidence(outcome)}"
        )
        sys.exit(1)
    if keep:
        print(f"\nkept in {home}")
    else:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
