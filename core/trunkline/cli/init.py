"""``trunkline init``: the first settings, asked for or taken as they are."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.config import Config

EXAMPLES = """
trunkline init
trunkline init --yes
trunkline init --yes --adapter openai --key-env OPENAI_API_KEY
trunkline init --yes --adapter openai --base-url http://127.0.0.1:11434/v1 --model llama3.2
"""


STARTER = """\
# The settings of this Trunkline. "trunkline config" shows every one with its value and where it comes from;
# docs/reference/configuration.md says what each means. Secrets stand here by reference only:
#
#   [adapters.openai]
#   api_key = { env = "OPENAI_API_KEY" }
"""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the person wants. ``key_env`` is the name of a variable, never a key."""

    block: str | None = None
    adapter: str | None = None
    key_env: str | None = None
    base_url: str | None = None
    model: str | None = None


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--yes", is_flag=True, help="Ask nothing; take what is given and the defaults.")
@click.option("--block", help="Name of the first block.  [default: main]")
@click.option("--adapter", help="Which model adapter answers.  [default: auto]")
@click.option("--key-env", help="NAME of the environment variable that holds the provider's key.")
@click.option("--base-url", help="Address of the provider, for a compatible one.")
@click.option("--model", help="Which of the provider's models.")
def command(yes: bool, **given: str | None) -> None:
    """Set up the home folder, the first block and a model.

    Keys are never asked for or stored: only the name of the variable that holds one. What is set already stays.
    """
    from trunkline.config import load_config
    from trunkline.runtime.home import Home

    config = load_config()
    wishes = Wishes(**given) if yes else _ask(config, Wishes(**given))
    _check_adapter(config, wishes.adapter)
    changes = _changes(config, wishes)
    Home.of(config).prepare()
    begun = _begin_file(config)
    _write(config, changes)
    _say_done(config, changes, begun)


def _ask(config: "Config", given: Wishes) -> Wishes:
    settings = config.settings
    block = given.block or click.prompt("Name of the first block", default=settings.gateway.default_block)
    names = ["auto", *_adapters(config)]
    adapter = given.adapter or click.prompt(
        f"Model adapter ({', '.join(names)})", default=settings.runtime.provider_adapter, type=click.Choice(names),
        show_choices=False,
    )  # fmt: skip
    if adapter in ("auto", "offline"):
        return Wishes(block, adapter, given.key_env, given.base_url, given.model)
    key_env = given.key_env or click.prompt(
        "Environment variable that holds the key (its name, not the key; empty for none)",
        default=f"{adapter.upper()}_API_KEY",
    )
    model = given.model or click.prompt(
        "Model (empty for the adapter's default)", default="", show_default=False
    )
    return Wishes(block, adapter, key_env, given.base_url, model or None)


def _adapters(config: "Config") -> list[str]:
    """Those that are ready, and those that only lack their settings."""
    from trunkline.plugins import Plugins

    plugins = Plugins.load(config)
    sections = {owned.item.name for owned in plugins.config_sections() if owned.item.table == "adapters"}
    return sorted(sections | {owned.item.name for owned in plugins.models()})


def _check_adapter(config: "Config", adapter: str | None) -> None:
    from trunkline.errors import ConfigError

    if adapter not in (None, "auto") and adapter not in (names := _adapters(config)):
        known = ", ".join(["auto", *names])
        raise ConfigError(f"There is no model adapter {adapter!r}.", hint=f"There are: {known}.")


def _changes(config: "Config", wishes: Wishes) -> dict[str, Any]:
    """The settings to write: those that differ from what holds now."""
    wanted: dict[str, Any] = {
        "gateway.default_block": wishes.block,
        "runtime.provider_adapter": wishes.adapter,
    }
    if wishes.adapter not in (None, "auto", "offline"):
        wanted |= _adapter_settings(f"adapters.{wishes.adapter}", wishes)
    now = {row.key: row.value for row in config.describe()}
    return {
        key: value
        for key, value in wanted.items()
        if value is not None and _shown(value) != _bare(now.get(key))
    }


def _adapter_settings(section: str, wishes: Wishes) -> dict[str, Any]:
    from trunkline.config import Secret
    from trunkline.errors import ConfigError

    settings: dict[str, Any] = {f"{section}.base_url": wishes.base_url, f"{section}.model": wishes.model}
    if wishes.key_env:
        if not wishes.key_env.isidentifier():
            raise ConfigError(
                "That is not the name of an environment variable.",
                hint="Give the name, such as OPENAI_API_KEY, and never the key itself.",
            )
        settings[f"{section}.api_key"] = Secret(wishes.key_env)
    return settings


def _shown(value: Any) -> str:
    from trunkline.config import Secret

    return f"env:{value.env}" if isinstance(value, Secret) else str(value)


def _bare(shown: str | None) -> str:
    """A value as ``describe`` shows it, without the word on whether a variable is set."""
    return (shown or "").removesuffix(" (set)").removesuffix(" (not set)")


def _begin_file(config: "Config") -> bool:
    """Make ``trunkline.toml`` with a few lines of guidance when there is none."""
    if config.file.exists():
        return False
    config.file.write_text(STARTER, encoding="utf-8")
    return True


def _write(config: "Config", changes: dict[str, Any]) -> None:
    """Write, and take it back when the result cannot be used."""
    from trunkline.config import load_config
    from trunkline.config.edit import write_settings
    from trunkline.errors import ConfigError

    if not changes:
        return
    before = config.file.read_bytes() if config.file.exists() else None
    write_settings(config.file, changes)
    try:
        load_config(config.home, environ=config.environ)
    except ConfigError:
        if before is None:
            config.file.unlink()
        else:
            config.file.write_bytes(before)
        raise


def _say_done(config: "Config", changes: dict[str, Any], begun: bool) -> None:
    click.echo(f"The home folder is {config.home}" + ("." if changes or begun else "; nothing to change."))
    if begun:
        click.echo(f"The settings are in {config.file}.")
    for key, value in changes.items():
        click.echo(f"{key} = {_shown(value)}")
    click.echo('Next: "trunkline chat". Anything wrong: "trunkline doctor".')
