"""``trunkline models``: the models that the configured adapters offer."""

from datetime import datetime
from typing import TYPE_CHECKING

import click
import msgspec

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trunkline.config import Config
    from trunkline.contracts.models.adapter import ModelAdapter, ModelInfo
    from trunkline.contracts.models.prices import PriceTable

EXAMPLES = """
trunkline models
trunkline models anthropic
trunkline models --refresh
trunkline models --json
"""

LISTING_SECONDS = 20.0
"""Seconds within which an adapter must list its models."""

FRESH_SECONDS = 86_400.0
"""Seconds for which a list is shown again without asking the vendor."""


class ListedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model. ``name`` is ``adapter/model``. Numbers are in tokens, 0 if unknown; ``abilities`` is None if unknown.
    ``price`` is in US dollars per million tokens of input, cached input and output, "" if none is configured.
    """

    name: str
    context_window: int
    max_output: int
    abilities: tuple[str, ...] | None
    price: str = ""


class AdapterListing(msgspec.Struct, frozen=True, kw_only=True):
    """The models of one adapter, as listed at ``at`` (UTC), or why they could not be listed."""

    adapter: str
    at: datetime
    models: tuple[ListedModel, ...] = ()
    problem: str = ""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("adapter", required=False)
@click.option(
    "--refresh", is_flag=True, help="Ask the vendors again instead of showing the lists of the last day."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(adapter: str | None, refresh: bool, as_json: bool) -> None:
    """List the models that can be asked: their context windows, longest answers, abilities and prices.

    A name from the list can be used in `runtime`, in a block, and in `main:ADAPTER/MODEL` of an OpenAI client. Lists
    are kept for a day. Only configured adapters are asked.
    """
    from trunkline.cli.aio import run
    from trunkline.cli.output import print_json
    from trunkline.config import load_config

    config = load_config()
    listings = run(_listings, config, adapter, refresh)
    if as_json:
        print_json({"adapters": listings})
    else:
        _print(listings)
    if listings and all(listing.problem for listing in listings):
        raise SystemExit(1)


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
        listings.append(listing or await _list(one, prices))
    if fresh := {
        one.adapter: one for one in listings if not one.problem and kept.get(one.adapter) is not one
    }:
        _write(file, {**kept, **fresh})
    return listings


async def _list(adapter: "ModelAdapter", prices: "PriceTable") -> AdapterListing:
    """Ask one adapter. A failure is part of the listing, so that the other adapters are shown."""
    import anyio

    from trunkline.contracts.conversations.messages import utc_now
    from trunkline.errors import ModelError

    try:
        with anyio.fail_after(LISTING_SECONDS):
            found = await adapter.models()
        models = tuple(
            _listed(adapter.name, info, prices) for info in sorted(found, key=lambda info: info.id)
        )
        return AdapterListing(adapter=adapter.name, at=utc_now(), models=models)
    except TimeoutError:
        problem = f"no answer in {LISTING_SECONDS:g} s"
    except ModelError as error:
        problem = error.fault
    finally:
        await adapter.aclose()
    return AdapterListing(adapter=adapter.name, at=utc_now(), problem=problem)


def _listed(adapter: str, info: "ModelInfo", prices: "PriceTable") -> ListedModel:
    name = f"{adapter}/{info.id}"
    rate = prices.find_rate(name)
    return ListedModel(
        name=name,
        context_window=info.context_window,
        max_output=info.max_output,
        abilities=None if info.abilities is None else tuple(sorted(info.abilities)),
        price="" if rate is None else rate.name,
    )


def _read(file: "Path") -> dict[str, AdapterListing]:
    """Return the lists of the last day. An unreadable file counts as none."""
    from trunkline.contracts.conversations.messages import utc_now

    try:
        kept = msgspec.json.decode(file.read_bytes(), type=list[AdapterListing])
    except (OSError, ValueError):
        return {}
    now = utc_now()
    return {one.adapter: one for one in kept if 0 <= (now - one.at).total_seconds() < FRESH_SECONDS}


def _write(file: "Path", listings: dict[str, AdapterListing]) -> None:
    from trunkline._util.paths.folder import open_beneath

    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open_beneath(file.parent) as cache:
        cache.write_atomic(file.name, msgspec.json.encode(list(listings.values())))


def _print(listings: "Sequence[AdapterListing]") -> None:
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
                f"{listing.adapter} did not list its models: {listing.problem}. See doctor --online.",
                err=True,
            )
        elif not listing.models:
            click.echo(
                f"{listing.adapter} does not list its models; any name of the vendor can be used.", err=True
            )


def _tokens(count: int) -> str:
    return f"{count:,}".replace(",", " ") if count else "-"
