"""``trunkline models --chosen``: which model answers for which purpose in a block, and which setting decided."""

from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunkline.config import Config
    from trunkline.contracts.blocks.messages import BlockConfig
    from trunkline.contracts.blocks.preferences import Preferences
    from trunkline.home.root_reader import RootReader

S = TypeVar("S", bound=msgspec.Struct)


class ChosenModel(msgspec.Struct, frozen=True, kw_only=True):
    """A purpose, the model that answers for it, and the setting or default that decided. ``model`` is "" if none
    answers.
    """

    purpose: str
    model: str
    source: str
    meaning: str = ""


def chosen_models(config: "Config", block: str) -> list[ChosenModel]:
    """Return the models of a block, by the files in memory and the settings. Calls no model and no worker.

    Raises:
        ConfigError: there is no such block, a file cannot be read, or no default adapter can be determined.
    """
    from trunkline.contracts.blocks.model_choice import (
        ABILITY_PURPOSES,
        CHAT,
        PURPOSES,
        VISION,
        preferred_model,
    )
    from trunkline.plugins import Plugins
    from trunkline.runtime.adapter_selection import describe_default_adapter

    own, preferences = _settings(config, block)
    default, _, why = describe_default_adapter(config, Plugins.load(config)).partition(" (")
    found = []
    for purpose in dict.fromkeys((*PURPOSES, *sorted({*own.models, *preferences.models}))):
        named = preferred_model(purpose, own, preferences)
        if named.model is None and purpose == VISION:
            model, source = "", "none; set models.vision in block.toml or preferences.toml"
        elif named.model is None and purpose in ABILITY_PURPOSES:
            model, source = "", "the adapter that answers chooses"
        else:
            model, source = named.model or default, named.source or why.removesuffix(")")
        shown = "chat" if purpose == CHAT else purpose
        found.append(
            ChosenModel(purpose=shown, model=model, source=source, meaning=PURPOSES.get(purpose, ""))
        )
    return [*found, *_memory(config)]


def print_chosen(block: str, chosen: list[ChosenModel]) -> None:
    """Print the models of a block as a table."""
    import click

    from trunkline.cli.output import print_table

    rows = [
        (one.purpose, one.model or "-", one.source, one.meaning or "a plugin's purpose") for one in chosen
    ]
    print_table(rows, header=("PURPOSE", "MODEL", "DECIDED BY", "FOR"))
    click.echo(f"A request that names a model, and /model in a conversation of {block}, come before these.")


def _memory(config: "Config") -> "Iterator[ChosenModel]":
    """Yield the embedder of memory, which no preference changes: all vectors are made by one."""
    embedder = config.settings.memory.embedder
    source = str(config.origins["memory.embedder"]) if embedder else "words only; set [memory] embedder"
    yield ChosenModel(purpose="search", model=embedder or "", source=source, meaning="vectors of memory")


def _settings(config: "Config", block: str) -> "tuple[BlockConfig, Preferences]":
    from trunkline.contracts.blocks.messages import BlockConfig
    from trunkline.contracts.blocks.paths import block_file_path
    from trunkline.contracts.blocks.preferences import PREFERENCES, Preferences
    from trunkline.errors import ConfigError
    from trunkline.home.paths import Home
    from trunkline.home.root_reader import RootReader

    try:
        memory = RootReader(Home.of(config).memory)
    except FileNotFoundError:
        return BlockConfig(), Preferences()
    try:
        own = _read(memory, block_file_path(block), BlockConfig)
        preferences = _read(memory, PREFERENCES, Preferences)
    finally:
        memory.close()
    if own is None and block != config.settings.gateway.default_block:
        raise ConfigError(f"There is no block {block!r}.", hint="`trunkline blocks` lists them.")
    return own or BlockConfig(), preferences or Preferences()


def _read(memory: "RootReader", path: str, kind: type[S]) -> S | None:
    """Return the settings in a file; None if it is absent. Raises ConfigError."""
    from trunkline._util.toml import SettingsFileError, read_settings
    from trunkline.errors import ConfigError
    from trunkline_bus import Refusal

    try:
        return read_settings(path, memory.text(path), kind)
    except Refusal as refusal:
        if refusal.code == "not_found":
            return None
        raise ConfigError(refusal.message, hint="Until it can be read, no model is called.") from refusal
    except SettingsFileError as error:
        raise ConfigError(str(error), hint="Until it is corrected, no model is called.") from error
