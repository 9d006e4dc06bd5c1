"""``trunkline restore FILE``: restores a home from a backup."""

from pathlib import Path

import click

from trunkline.cli.command import Command

EXAMPLES = """
trunkline restore garden.tar
TRUNKLINE_HOME=~/second trunkline restore garden.tar
trunkline restore garden.tar --replace
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="First move the present contents aside; nothing is deleted.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path, replace: bool, as_json: bool) -> None:
    """Unpack a backup into the home folder, which must be empty. The platform must be stopped.

    A backup of a newer Trunkline is refused. A damaged backup changes nothing.
    """
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import print_json
    from trunkline.config import resolve_home
    from trunkline.home.backup import restore_backup
    from trunkline.home.paths import Home

    home = Home.at(resolve_home())
    done = restore_backup(home, file, replace=replace)
    if as_json:
        return print_json(
            {"home": str(home.path), "label": done.label, "aside": str(done.aside or ""), "moved": done.moved}
        )
    click.echo(
        f"Restored {', '.join(done.label.holds)} of {format_local_time(done.label.created)} to {home.path}."
    )
    if done.aside is not None:
        click.echo(f"The previous contents are in {done.aside}: {', '.join(done.moved)}.")
