"""``trunkline doctor``: what is wrong with this installation and what to do about it."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.doctor import Finding

EXAMPLES = """
trunkline doctor
trunkline doctor --online
trunkline doctor --json
"""

MARKS = {"ok": "ok     ", "warning": "WARNING", "error": "ERROR  ", "skipped": "-      "}


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--online", is_flag=True, help="Also ask the model provider whether it answers.")
def command(as_json: bool, online: bool) -> int:
    """Check the installation. Leaves with 1 when something is an error; nothing is changed.

    Without --online nothing goes out to the network but to the configured bus.
    """
    from trunkline.cli.aio import run
    from trunkline.cli.output import json_out
    from trunkline.doctor import examine

    findings = run(examine, online)
    broken = any(finding.status == "error" for finding in findings)
    if as_json:
        json_out({"ok": not broken, "checks": findings})
    else:
        for finding in findings:
            _print(finding)
    return 1 if broken else 0


def _print(finding: "Finding") -> None:
    from trunkline.cli.output import say

    by = f" [{finding.owner}]" if finding.owner else ""
    say(f"{MARKS[finding.status]}  {finding.id:<20} {finding.summary}{by}")
    if finding.hint:
        say(f"{'':30} -> {finding.hint}")
