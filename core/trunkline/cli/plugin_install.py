"""``trunkline plugins install``, ``remove``, ``enable``, ``disable``: the dialog with the person. ``cli.install``
does the work.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.confirmation import confirm, require_terminal

if TYPE_CHECKING:
    from trunkline.cli.install.pip import Pip
    from trunkline.cli.install.project import Project
    from trunkline.cli.install.resolution import InstallPlan
    from trunkline.config import Config
    from trunkline.plugins.manifest import PluginManifest

INSTALL = """
trunkline plugins install trunkline-weather
trunkline plugins install trunkline-weather==1.2.0
trunkline plugins install ./trunkline-weather
trunkline plugins install dist/trunkline_weather-0.1.0-py3-none-any.whl --yes
trunkline plugins install trunkline-weather --wheels ./wheels
"""


@click.command("install", cls=Command, examples=INSTALL)
@click.argument("target")
@click.option("--yes", is_flag=True, help="Do not ask. What the plugin asks for is still shown.")
@click.option("--undeclared", is_flag=True, help="With --yes: also install a plugin that has no manifest.")
@click.option(
    "--wheels",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Install only from the wheels in this folder, without an index.",
)
@click.option(
    "--no-build-isolation",
    is_flag=True,
    help="Build a folder with the packages installed here instead of those that it requires.",
)
def install(
    target: str,
    yes: bool,
    undeclared: bool,
    wheels: Path | None,
    no_build_isolation: bool,
) -> None:
    """Show what a plugin asks for, and install it if you agree.

    TARGET is NAME, NAME==VERSION, a wheel, or a project folder. None of the plugin's code runs before you agree. A
    folder is then built in a sandbox without network access and without your files. No installed package is replaced,
    except an earlier version of the plugin. plugins.toml in the home folder records the installed files.
    """
    from trunkline.cli.aio import run
    from trunkline.cli.install.installer import install as carry_out
    from trunkline.cli.install.pip import find_pip
    from trunkline.cli.install.project import Project
    from trunkline.cli.install.resolution import resolve, with_built_wheel
    from trunkline.config import load_config
    from trunkline.plugins.pins import read_pins

    config = load_config()
    pip = find_pip(wheels=wheels)
    with TemporaryDirectory(prefix="trunkline-") as folder:
        click.echo(f"Fetching {target} ...", err=True)
        offer = resolve(pip, target, Path(folder), read_pins(config.home))
        _show(offer)
        _agree(offer, yes=yes, undeclared=undeclared)
        if isinstance(offer.plugin, Project):
            click.echo(f"Building {offer.plugin.name} in a sandbox ...", err=True)
            file = run(_built, config, pip, offer.plugin, Path(folder) / "build", not no_build_isolation)
            offer = with_built_wheel(offer, file)
        carry_out(pip, offer, config.home)
    click.echo(f"Installed {offer.plugin.name} {offer.plugin.version}.")
    _say_restart(config)


async def _built(config: "Config", pip: "Pip", project: "Project", folder: Path, isolated: bool) -> Path:
    """Build and return the wheel of a project that a person has agreed to."""
    from trunkline.cli.install.project import BUILD_YOURSELF_HINT
    from trunkline.cli.install.wheel_build import build_wheel
    from trunkline.errors import PluginError, ToolError
    from trunkline.home.kill_switch import KillSwitch
    from trunkline.plugins import Plugins
    from trunkline.workers.tools.sandboxes import SandboxSelector

    try:
        sandbox = await SandboxSelector(Plugins.load(config).sandboxes(), KillSwitch(config.home)).select()
        return await build_wheel(pip, project, folder, sandbox, isolated=isolated)
    except ToolError as error:
        raise PluginError(f"{project.name} was not built. {error}", hint=BUILD_YOURSELF_HINT) from error


def _show(offer: "InstallPlan") -> None:
    """Print all that is known of a plugin before any of its code has run. Text of its author cannot leave its line."""
    from trunkline._util.text import one_line
    from trunkline.cli.install.wheel import Wheel
    from trunkline.cli.output import print_table

    plugin = offer.plugin
    came = f"from a {offer.source}" if offer.source != "index" else "from the package index"
    proof = f", sha256 {plugin.sha256[:16]}…" if isinstance(plugin, Wheel) else ""
    click.echo(f"{plugin.name} {one_line(plugin.version)}, {came}{proof}")
    if plugin.summary:
        click.echo(f'Its author says: "{one_line(plugin.summary)}"')
    brings = ", ".join(f"{wheel.name} {wheel.version}" for wheel in offer.dependencies) or "-"
    built = () if isinstance(plugin, Wheel) else (("build", f"runs {plugin.backend}, in a sandbox"),)
    click.echo()
    print_table([*_rows(plugin.manifest), ("brings", brings), *built, ("replaces", offer.replaces or "-")])
    click.echo()
    if plugin.manifest is None:
        seen = ", ".join((*plugin.source_manifest.hooks, *plugin.source_manifest.effects)) or "nothing"
        click.echo(
            "It has no manifest, so nothing restricts it: it may use any hook, guards included, and tools of any\n"
            f"effect. Found in its source: {one_line(seen)}."
        )
    elif plugin.manifest.isolation == "process":
        click.echo(
            "The platform enforces its hooks and effects. It runs in its own process with its own credentials."
        )
    else:
        click.echo(
            "The platform enforces its hooks and effects. The rest is not enforced unless the plugin "
            "runs in its own process."
        )


def _rows(asks: "PluginManifest | None") -> list[tuple[str, str]]:
    if asks is None:
        return [("asks for", "undeclared")]
    listed = ("hooks", "effects", "network", "files", "secrets", "programs")
    return [
        *((name, ", ".join(getattr(asks, name)) or "-") for name in listed),
        ("isolation", asks.isolation),
    ]


def _agree(offer: "InstallPlan", *, yes: bool, undeclared: bool) -> None:
    """Return when a person has agreed. Without an answer and without ``--yes`` it raises an error."""
    from trunkline.errors import PluginError

    name, declares = offer.plugin.name, offer.plugin.manifest is not None
    if yes and (declares or undeclared):
        return
    if yes:
        raise PluginError(f"{name} has no manifest.", hint="To install it anyway: --yes --undeclared")
    require_terminal("--yes", done="installed")
    if declares:
        agreed = click.confirm("Install it?", default=False)
    else:
        agreed = (
            click.prompt("Type its name to install it all the same", default="", show_default=False) == name
        )
    if not agreed:
        raise PluginError("Nothing was installed.")


@click.command("remove", cls=Command, examples="trunkline plugins remove trunkline-weather --yes")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """Remove the plugin NAME, and the packages installed with it that nothing else needs."""
    from trunkline.cli.install.installer import removal_plan
    from trunkline.cli.install.installer import remove as carry_out
    from trunkline.cli.install.pip import find_pip
    from trunkline.config import load_config

    config = load_config()
    owner = _owner(config, name)
    _insist_on_unneeded(config, owner)
    going = removal_plan(owner, config.home)
    click.echo(f"This removes {', '.join(going)}.")
    if not yes:
        confirm("Remove?", done="removed")
    carry_out(find_pip(), going, config.home)
    if _disabled_without(config, owner) != config.settings.plugins.disabled:
        _write_disabled(config, _disabled_without(config, owner))
    click.echo(f"Removed {owner}. Its settings and data stay.")
    _say_restart(config)


@click.command("disable", cls=Command, examples="trunkline plugins disable weather")
@click.argument("name")
def disable(name: str) -> None:
    """Disable the plugin NAME. It stays installed but is not loaded."""
    from trunkline.config import load_config

    config = load_config()
    owner = _owner(config, name)
    _insist_on_unneeded(config, owner)
    disabled = config.settings.plugins.disabled
    if _disabled_without(config, owner) != disabled:
        click.echo(f"{owner} is disabled already.")
        return
    _write_disabled(config, (*disabled, owner))
    click.echo(f"{owner} is disabled.")
    _say_restart(config)


@click.command("enable", cls=Command, examples="trunkline plugins enable weather")
@click.argument("name")
def enable(name: str) -> None:
    """Enable the plugin NAME again."""
    from trunkline.config import load_config

    config = load_config()
    owner = _owner(config, name)
    left = _disabled_without(config, owner)
    if left == config.settings.plugins.disabled:
        click.echo(f"{owner} is not disabled.")
        return
    _write_disabled(config, left)
    click.echo(f"{owner} is enabled.")
    _say_restart(config)


def _owner(config: "Config", name: str) -> str:
    """Return the distribution that a name means. Raises PluginError with the nearest name."""
    from trunkline.config.problems import did_you_mean
    from trunkline.errors import PluginError
    from trunkline.plugins import discovery
    from trunkline.plugins.pins import read_pins

    found = discovery.find_candidates((), config.settings.runtime.tool_sources)
    for candidate in found:
        if candidate.is_named([name]):
            return candidate.owner
    known = {*read_pins(config.home), *config.settings.plugins.disabled}
    for owner in known:
        if discovery.normal_name(owner) == discovery.normal_name(name):
            return owner
    whole = discovery.normal_name(name).startswith("trunkline-")
    near = did_you_mean(name, {one.owner if whole else one.name for one in found} | known)
    raise PluginError(f"There is no plugin {name!r}.", hint=near or 'See "trunkline plugins list".')


def _insist_on_unneeded(config: "Config", owner: str) -> None:
    from trunkline.config.settings import DEFAULT_STORE
    from trunkline.errors import PluginError
    from trunkline.plugins import discovery

    named = {candidate.owner: candidate for candidate in discovery.find_candidates((), ())}.get(owner)
    settings = config.settings
    if named is not None and named.is_named(settings.plugins.required):
        raise PluginError(f"{owner} is in [plugins] required.", hint="Remove it from that list first.")
    if owner == (settings.memory.store or DEFAULT_STORE):
        raise PluginError(
            f"{owner} keeps the memory, and nothing starts without it.",
            hint="Choose another store first: [memory] store in trunkline.toml.",
        )


def _disabled_without(config: "Config", owner: str) -> tuple[str, ...]:
    from trunkline.plugins import discovery

    found = next((one for one in discovery.find_candidates((), ()) if one.owner == owner), None)
    names = {discovery.normal_name(name) for name in ((found.owner, found.name) if found else (owner,))}
    return tuple(
        name for name in config.settings.plugins.disabled if discovery.normal_name(name) not in names
    )


def _write_disabled(config: "Config", disabled: tuple[str, ...]) -> None:
    from trunkline.config.editor import write_settings

    write_settings(config.file, {"plugins.disabled": disabled or None})


def _say_restart(config: "Config") -> None:
    from trunkline.home.paths import Home
    from trunkline.home.run_file import running_pid

    if running_pid(Home.of(config)) is not None:
        click.echo("The running platform is unchanged. Restart it to apply the change.")
