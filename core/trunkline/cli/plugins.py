"""``trunkline plugins``: list plugins, install and remove them, and create a new one."""

from typing import TYPE_CHECKING

import click

from trunkline.cli import plugin_install
from trunkline.cli.command import Group

if TYPE_CHECKING:
    from trunkline.cli.scaffold import PluginKind
    from trunkline.plugins import LoadReport

EXAMPLES = """
trunkline plugins list
trunkline plugins messages
trunkline plugins install trunkline-weather
trunkline plugins disable weather
trunkline plugins new tool weather
trunkline plugins release weather
"""

NEW = """
trunkline plugins new tool weather
trunkline plugins new channel doorbell --into ~/code
"""

THEN = {
    "tool": 'trunkline plugins list, and in "trunkline chat": /tool {module}_hello',
    "channel": 'name it in trunkline.toml: [channels] enabled = ["terminal", "{name}"]',
    "adapter": 'choose it: [runtime] provider_adapter = "{name}"',
    "store": 'choose it in trunkline.toml: [memory] store = "trunkline-{name}"',
}
"""The next step after a new plugin is installed."""


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """List, install and remove plugins, release one from quarantine, or create a new one."""


for _one in (plugin_install.install, plugin_install.remove, plugin_install.disable, plugin_install.enable):
    command.add_command(_one)


@command.command("list", examples="trunkline plugins list\ntrunkline plugins list --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_plugins(as_json: bool) -> None:
    """List the plugins: version, origin, hooks, and the reason if one is not loaded."""
    from trunkline.cli.output import print_json
    from trunkline.config import load_config
    from trunkline.plugins import Plugins
    from trunkline.plugins.pins import read_pins

    config = load_config()
    report = Plugins.load(config).full_report()
    pins = read_pins(config.home)
    if as_json:
        rows = {"plugins": report.plugins, "troubles": report.troubles, "missing": report.missing}
        print_json(rows | {"pins": pins})
        return
    _print_table(report)
    for name in sorted(pins.keys() - {state.owner.partition(":")[0] for state in report.plugins}):
        click.echo(f"\n{name} was installed here and is missing now.")
        click.echo(
            f"  -> trunkline plugins install {name}=={pins[name].version}, or: trunkline plugins remove {name}"
        )


def _print_table(report: "LoadReport") -> None:
    from trunkline.cli.output import print_table, print_text

    rows = [
        (state.name, state.version, state.owner, state.status, _hooks(state.hooks))
        for state in report.plugins
    ]
    print_table(rows, header=("PLUGIN", "VERSION", "DISTRIBUTION", "STATUS", "HOOKS"))
    for state in report.unusable:
        print_text(
            f"\n{state.name} is {state.status}: {state.reason}"
            + (f"\n  -> {state.hint}" if state.hint else "")
        )
    for trouble in report.troubles:
        print_text(f"\n{trouble.owner}: {trouble.hook}: {trouble.reason}")
    for name in report.missing:
        click.echo(f"\n{name} is required and not loaded.")


@command.command("messages", examples="trunkline plugins messages\ntrunkline plugins messages --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the JSON Schema of each payload.")
def list_messages(as_json: bool) -> None:
    """List the payloads that plugins publish on their own subjects: tag, plugin and description."""
    import inspect

    import msgspec

    from trunkline.cli.output import print_json, print_table
    from trunkline.config import load_config
    from trunkline.plugins import Plugins

    payloads = Plugins.load(load_config()).message_types()
    rows = [
        (str(one.item.__struct_config__.tag), one.owner, inspect.getdoc(one.item) or "") for one in payloads
    ]
    if as_json:
        schemas = [msgspec.json.schema(one.item) for one in payloads]
        keys = ("tag", "plugin", "description", "schema")
        print_json(
            [dict(zip(keys, (*row, schema), strict=True)) for row, schema in zip(rows, schemas, strict=True)]
        )
    elif not rows:
        click.echo("No plugin publishes on its own subjects.")
    else:
        lines = [(tag, plugin, said.partition("\n")[0]) for tag, plugin, said in rows]
        print_table(lines, header=("TAG", "PLUGIN", "WHAT"))


@command.command("release", examples="trunkline plugins release weather")
@click.argument("name")
def release_plugin(name: str) -> None:
    """Release the plugin NAME from quarantine. It is loaded at the next start."""
    from trunkline.cli.output import print_done
    from trunkline.config import load_config
    from trunkline.errors import PluginError
    from trunkline.plugins.quarantine import release_from_quarantine

    if not release_from_quarantine(load_config(), name):
        raise PluginError(
            f"{name!r} is not in quarantine.",
            hint='"trunkline plugins list" shows the plugins in quarantine.',
        )
    print_done(f"{name} is released from quarantine. Restart Trunkline to load it.")


def _restart_first() -> str:
    """Return the step that a running platform needs, because it loads plugins at its start; "" without one."""
    from trunkline.config.loader import resolve_home
    from trunkline.home.paths import Home
    from trunkline.home.run_file import running_pid

    return "restart Trunkline, which runs; " if running_pid(Home.at(resolve_home())) is not None else ""


def _hooks(names: tuple[str, ...]) -> str:
    return ", ".join(name.removeprefix("trunkline_") for name in names) or "-"


@command.command("new", examples=NEW)
@click.argument("kind", type=click.Choice(["tool", "channel", "adapter", "store"]))
@click.argument("name")
@click.option(
    "--into", default=".", type=click.Path(), help="The folder in which to create it.  [default: here]"
)
def new_plugin(kind: "PluginKind", name: str, into: str) -> None:
    """Create a working package for a plugin called NAME, with tests that pass."""
    from pathlib import Path

    from trunkline.cli.scaffold import write_plugin

    made = write_plugin(kind, name, Path(into).expanduser())
    click.echo(f"Made {made}")
    click.echo(f"Try it:  pip install pytest -e {made} && pytest {made}")
    click.echo(f"Then:    {_restart_first()}{THEN[kind].format(name=name, module=name.replace('-', '_'))}")
