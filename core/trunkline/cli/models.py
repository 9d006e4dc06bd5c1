"""``trunkline models``: the models that the configured adapters offer, and those that the settings choose."""

from typing import TYPE_CHECKING

import click
import msgspec

from trunkline.cli.command import Command
from trunkline.cli.completion_types import BlockName

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trunkline.config import Config
    from trunkline.contracts.models.adapter import ModelAdapter
    from trunkline.contracts.models.listing import AdapterListing
    from trunkline.contracts.models.prices import PriceTable

EXAMPLES = """
trunkline models
trunkline models anthropic
trunkline models --refresh
trunkline models --chosen
trunkline models --chosen --block garden --json
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("adapter", required=False)
@click.option(
    "--refresh", is_flag=True, help="Ask the vendors again instead of showing the lists of the last day."
)
@click.option("--chosen", is_flag=True, help="Show which model answers for which purpose, and why.")
@click.option("--block", type=BlockName(), help="With --chosen: the block.  [default: the default block]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(adapter: str | None, refresh: bool, chosen: bool, block: str | None, as_json: bool) -> None:
    """List the models that can be asked: their context windows, longest answers, abilities and prices.

    A name from the list can be used in a block, in preferences.toml, after /model in a conversation, and in
    `main:ADAPTER/MODEL` of an OpenAI client. Lists are kept for a day. Only configured adapters are asked.

    With --chosen the command asks nobody. It shows which model answers for each purpose in a block, and the setting or
    default that decided.
    """
    from trunkline.cli.aio import run
    from trunkline.cli.output import print_json
    from trunkline.config import load_config

    config = load_config()
    if block is not None and not chosen:
        raise click.UsageError("--block needs --chosen.")
    if chosen:
        _show_chosen(config, block or config.settings.gateway.default_block, as_json)
        return
    listings = run(_listings, config, adapter, refresh)
    if as_json:
        print_json({"adapters": listings})
    else:
        _print(listings)
    if listings and all(listing.problem for listing in listings):
        raise SystemExit(1)


def _show_chosen(config: "Config", block: str, as_json: bool) -> None:
    from trunkline.cli.model_choice import chosen_models, print_chosen
    from trunkline.cli.output import print_json

    found = chosen_models(config, block)
    if as_json:
        print_json({"block": block, "models": found})
    else:
        print_chosen(block, found)


async def _listings(config: "Config", adapter: str | None, refresh: bool) -> "list[AdapterListing]":
    from trunkline.contracts.models.price_list import installed_prices
    from trunkline.errors import ConfigError
    from trunkline.home.paths import Home
    from trunkline.plugins import Plugins

    models = [owned.item for owned in Plugins.load(config).models()]
    asked = sorted((one for one in models if one.configured), key=lambda one: one.name)
    if adapter is not None:
        asked = [one for one in asked if one.name == adapter]
        if not asked:
            known = ", ".join(sorted(one.name for one in models if one.configured))
            raise ConfigError(f"No adapter {adapter!r} is configured.", hint=f"These are: {known}.")
    file = Home.of(config).cache / "models.json"
    kept = _read(file)
    prices = installed_prices(config.settings.models.prices)
    listings = []
    for one in asked:
        listing = None if refresh else kept.get(one.name)
        listings.append(listing or await _asked(one, prices))
    if fresh := {
        one.adapter: one for one in listings if not one.problem and kept.get(one.adapter) is not one
    }:
        _write(file, {**kept, **fresh})
    return listings


async def _asked(adapter: "ModelAdapter", prices: "PriceTable") -> "AdapterListing":
    from trunkline.contracts.models.listing import list_models

    try:
        return await list_models(adapter, prices)
    finally:
        await adapter.aclose()


def _read(file: "Path") -> "dict[str, AdapterListing]":
    """Return the lists of the last day. An unreadable file counts as none."""
    from trunkline.contracts.models.listing import AdapterListing

    try:
        kept = msgspec.json.decode(file.read_bytes(), type=list[AdapterListing])
    except (OSError, ValueError):
        return {}
    return {one.adapter: one for one in kept if one.is_fresh}


def _write(file: "Path", listings: "dict[str, AdapterListing]") -> None:
    from trunkline._util.paths.folder import open_beneath

    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open_beneath(file.parent) as cache:
        cache.write_atomic(file.name, msgspec.json.encode(list(listings.values())))


def _print(listings: "Sequence[AdapterListing]") -> None:
    from trunkline.cli.model_errors import describe_fault
    from trunkline.cli.output import print_table

    rows = [
        (
            model.name,
            _tokens(model.context_window),
            _tokens(model.max_output),
            model.price or "-",
            ", ".join(model.abilities) if model.abilities is not None else "-",
        )
        for listing in listings
        for model in listing.models
    ]
    if rows:
        print_table(rows, header=("MODEL", "CONTEXT", "ANSWER", "PRICE", "ABILITIES"))
    for listing in listings:
        if listing.problem:
            click.echo(
                f"{listing.adapter} did not list its models: {describe_fault(listing.problem)}. See doctor --online.",
                err=True,
            )
        elif not listing.models:
            click.echo(
                f"{listing.adapter} does not list its models; any name of the vendor can be used.", err=True
            )


def _tokens(count: int) -> str:
    return f"{count:,}".replace(",", " ") if count else "-"
