"""Prints the results of the official conformance suite for our host and our server, a line a scenario.

``python plugins/mcp/tests/conformance/report.py [--json]`` ends with an error when anything fails that a revision
requires.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

sys.path.insert(0, str(Path(__file__).parent))

import block_server_app
import fixture
import suite

Table = dict[str, dict[str, Mapping[str, suite.Verdict]]]


async def measured() -> Table:
    """Return the results by role and revision."""
    found: Table = {"client": {}, "server": {}}
    with tempfile.TemporaryDirectory() as place, suite.client_that_stays(Path(place)) as words:
        for revision in suite.REVISIONS:
            found["client"][revision] = await _run("client", revision, words, place)
    for revision in suite.REVISIONS:
        async with block_server_app.at_address(fixture.Fixture().server()) as url:
            with tempfile.TemporaryDirectory() as place:
                found["server"][revision] = await _run("server", revision, ["--url", url], place)
    return found


async def _run(role: str, revision: str, words: list[str], place: str) -> Mapping[str, suite.Verdict]:
    return await anyio.to_thread.run_sync(partial(suite.run, role, revision, words, Path(place)))


def show(table: Table) -> None:
    """The table for people."""
    for role, revisions in table.items():
        for revision, verdicts in revisions.items():
            required = [one for one in verdicts.values() if one.scored]
            print(
                f"{role} {revision}: {sum(one.ok for one in required)} of {len(required)} required scenarios"
            )
            for name, one in verdicts.items():
                mark = "passed" if one.ok else "FAILED" if one.scored else "failed, not scored"
                print(f"  {name:50} {one.passed:3} checks  {mark}")


def main() -> None:
    table = anyio.run(measured)
    if "--json" in sys.argv:
        plain = {
            role: {of: {k: asdict(v) for k, v in one.items()} for of, one in by.items()}
            for role, by in table.items()
        }
        print(json.dumps(plain, indent=2))
    else:
        show(table)
    every = [one for by in table.values() for verdicts in by.values() for one in verdicts.values()]
    sys.exit(1 if any(one.scored and not one.ok for one in every) else 0)


if __name__ == "__main__":
    main()
