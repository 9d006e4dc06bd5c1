"""Lists of models: what adapters offer, with prices, and the names that are near a wrong one."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from difflib import get_close_matches

import anyio
import msgspec

from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.models.adapter import ModelAdapter, ModelInfo
from trunkline.contracts.models.prices import PriceTable
from trunkline.errors import ModelError
from trunkline_bus import Payload

LISTING_SECONDS = 20.0
"""Seconds within which an adapter must list its models."""

FRESH_SECONDS = 86_400.0
"""Seconds for which a list is used again without asking the vendor."""

MAX_NEAR = 3
"""The largest number of names that are proposed for a wrong one."""


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

    @property
    def is_fresh(self) -> bool:
        """Report whether the list is recent enough to be used again. That of a failure never is."""
        return not self.problem and 0 <= (utc_now() - self.at).total_seconds() < FRESH_SECONDS

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(model.name for model in self.models)


class ListModels(Payload, frozen=True, kw_only=True, tag="model.list.v1"):
    """Ask for the models of the configured adapters. With ``refresh`` the vendors are asked again."""

    refresh: bool = False


class ModelListings(Payload, frozen=True, kw_only=True, tag="model.listed.v1"):
    """The lists, sorted by adapter."""

    adapters: tuple[AdapterListing, ...] = ()


async def list_models(adapter: ModelAdapter, prices: PriceTable) -> AdapterListing:
    """Ask one adapter for its models. A failure is part of the listing, so that other adapters can be shown. Raises
    nothing.
    """
    try:
        with anyio.fail_after(LISTING_SECONDS):
            found = await adapter.models()
    except TimeoutError:
        problem = f"no answer in {LISTING_SECONDS:g} s"
    except ModelError as error:
        problem = error.fault
    else:
        models = (_listed(adapter.name, info, prices) for info in sorted(found, key=lambda info: info.id))
        return AdapterListing(adapter=adapter.name, at=utc_now(), models=tuple(models))
    return AdapterListing(adapter=adapter.name, at=utc_now(), problem=problem)


def is_listed(name: str, listed: Iterable[str]) -> bool:
    """Report whether a list has a model, or a version of it (``llama3.2`` for ``llama3.2:latest``)."""
    versions = (f"{name}:", f"{name}@", f"{name}-20")
    return any(one == name or one.startswith(versions) for one in listed)


def nearest_models(name: str, listed: Sequence[str]) -> tuple[str, ...]:
    """Return the listed names that are most similar to a wrong one, the nearest first."""
    beginning = [one for one in listed if name and one.startswith(name)]
    similar = get_close_matches(name, listed, MAX_NEAR, cutoff=0.5)
    return tuple(dict.fromkeys((*beginning, *similar)))[:MAX_NEAR]


def _listed(adapter: str, info: ModelInfo, prices: PriceTable) -> ListedModel:
    name = f"{adapter}/{info.id}"
    rate = prices.find_rate(name)
    return ListedModel(
        name=name,
        context_window=info.context_window or prices.find_context_window(name) or 0,
        max_output=info.max_output,
        abilities=None if info.abilities is None else tuple(sorted(info.abilities)),
        price="" if rate is None else rate.name,
    )
