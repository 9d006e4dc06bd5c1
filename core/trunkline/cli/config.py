"""``trunkline config``: every setting with its value and origin."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.config import Config

EXAMPLES = """
trunkline config
trunkline config gateway
trunkline config --json
TRUNKLINE_GATEWAY__PORT=9000 trunkline config gateway.port
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("prefix", default="")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(prefix: str, as_json: bool) -> None:
    """Show every setting and its origin; with PREFIX, only settings that begin with it.

    A secret is shown as the name of the variable that holds it.
    """
    from trunkline.cli.output import print_json, print_table
    from trunkline.config import load_config

    config = load_config()
    rows = [row for row in config.describe() if _under(row.key, prefix)]
    if not rows:
        _refuse(prefix, [row.key for row in config.describe()])
    _warn(config)
    if as_json:
        entries = [
            {"key": row.key, "value": row.value, "origin": row.origin.kind, "where": row.origin.where}
            for row in rows
        ]
        print_json({"home": str(config.home), "file": str(config.file), "settings": entries})
        return
    print_table(
        [(row.key, row.value, str(row.origin)) for row in rows], header=("SETTING", "VALUE", "ORIGIN")
    )


def _warn(config: "Config") -> None:
    """Warn about sections that no component reads, because the plugin is missing or the name is wrong."""
    from trunkline.plugins import Plugins

    for problem in Plugins.load(config).config_problems():
        click.echo(f"Warning: {problem}", err=True)


def _under(key: str, prefix: str) -> bool:
    return not prefix or key == prefix or key.startswith(f"{prefix}.")


def _refuse(prefix: str, keys: list[str]) -> None:
    from difflib import get_close_matches

    from trunkline.errors import ConfigError

    near = get_close_matches(prefix, {*keys, *(key.partition(".")[0] for key in keys)}, n=1)
    hint = f"Did you mean {near[0]}?" if near else '"trunkline config" shows all settings.'
    raise ConfigError(f"There is no setting {prefix!r}.", hint=hint)
