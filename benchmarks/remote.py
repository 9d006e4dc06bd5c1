"""``python -m benchmarks.remote --offline SECONDS``: a remote whose line is down for long, and what comes of its calls.

Calls are under way when the line goes; they end while it is down; hub and remote are killed and started again
meanwhile. Every result must come once the line is up, and no call may have run twice; else it exits with 1.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import anyio

from tests.deploy.two_hosts import Order, Outcome, run, why_not


def show_progress(text: str) -> None:
    """Progress, on one line where there is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
    else:
        sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def report(outcome: Outcome) -> str:
    """The figures, a line each."""
    order, waited = outcome.order, sorted(outcome.waited)
    killed = [name for name, was in (("hub", order.kill_hub), ("remote", order.kill_remote)) if was]
    rows = (
        ("line down", f"{order.offline:g} s"),
        ("killed meanwhile", ", ".join(killed) or "nobody"),
        ("calls under way when it went", str(order.calls)),
        ("results that came", str(outcome.answered)),
        ("lost", str(order.calls - outcome.answered)),
        ("doubled effects", str(len(outcome.doubled))),
        ("turns without the remote meanwhile", str(outcome.local_answers)),
        ("told that it is out of reach after", f"{outcome.reported_after:.1f} s"),
        ("from line up to result, p50", f"{statistics.median(waited):.1f} s" if waited else "-"),
        ("from line up to result, max", f"{waited[-1]:.1f} s" if waited else "-"),
    )
    return "\n".join(f"{name:<38}{value:>12}" for name, value in rows)


def main() -> None:
    """Run and print; exits with 1 when a promise was broken, with 2 where it cannot run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.remote", description=__doc__.split("\n")[0])
    parser.add_argument("--offline", type=float, default=60.0, help="seconds for which the line is down (60)")
    parser.add_argument("--calls", type=int, default=8, help="calls under way when it goes (8)")
    parser.add_argument("--no-kills", action="store_true", help="kill nobody meanwhile")
    given = parser.parse_args()
    if (reason := why_not()) is not None:
        print(f"Cannot run here: {reason}")
        sys.exit(2)
    folder = Path(tempfile.mkdtemp(prefix="trunkline-remote-"))
    kills = not given.no_kills
    outcome = anyio.run(run, Order(given.offline, given.calls, kills, kills), folder, show_progress)
    print(report(outcome))
    if outcome.broken:
        print(f"\na promise was broken; logs are kept in {folder}\n{outcome}")
        sys.exit(1)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
