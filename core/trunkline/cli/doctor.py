"""``trunkline doctor``: reports the problems of this installation and how to fix them."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.cli.checks import CheckReport
    from trunkline.home.listeners import Listener

EXAMPLES = """
trunkline doctor
trunkline doctor --online
trunkline doctor --json
"""

MARKS = {"ok": "ok     ", "warning": "WARNING", "error": "ERROR  ", "skipped": "-      "}

COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--online", is_flag=True, help="Also test whether the model provider answers.")
def command(as_json: bool, online: bool) -> int:
    """Check the installation and report how to fix it. The command changes nothing. The exit status is 1 when a check
    reports an error.

    The output ends with every open port of this home: its address, its purpose, and the credential that it requires.
    Without --online, the command connects to nothing but the configured bus.
    """
    from trunkline.cli.aio import run
    from trunkline.cli.checks import run_checks
    from trunkline.cli.output import print_json
    from trunkline.config import resolve_home
    from trunkline.home.listeners import read_listeners

    findings, open_ports = run(run_checks, online), read_listeners(resolve_home() / "run")
    broken = any(finding.status == "error" for finding in findings)
    if as_json:
        print_json({"ok": not broken, "checks": findings, "listeners": open_ports})
    else:
        for finding in findings:
            _print(finding)
        _print_listeners(open_ports)
    return 1 if broken else 0


def _print(finding: "CheckReport") -> None:
    from trunkline.cli.output import colourize, fit_text, print_text

    by = f" [{finding.owner}]" if finding.owner else ""
    mark = MARKS[finding.status]
    line = fit_text(f"{mark}  {finding.id:<20} {finding.summary}{by}", hang=len(mark) + 23)
    click.echo(colourize(mark, COLOURS.get(finding.status)), nl=False, color=True)
    print_text(line.removeprefix(mark))
    if finding.hint:
        print_text(fit_text(f"{'':30} -> {finding.hint}", hang=34))


def _print_listeners(listeners: "list[Listener]") -> None:
    from trunkline.cli.output import fit_text, print_text

    print_text("\nListening:" if listeners else "\nListening: nothing")
    for one in listeners:
        print_text(fit_text(f"  {one.address:<26} {one.purpose}", hang=29))
        print_text(fit_text(f"  {'':<26} credential: {one.credential}", hang=31))
