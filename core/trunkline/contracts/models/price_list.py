"""The price list that Trunkline ships, below the owner's prices."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec

from trunkline.contracts.models.prices import Price, PriceTable

FILE_NAME = "prices.toml"


class PriceList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file ``prices.toml``. ``version`` is the day on which the prices were compared with the vendors' pages."""

    version: str
    prices: dict[str, Price]


@cache
def read_price_list() -> PriceList:
    """Return the shipped list, which is read once in a process. The file is part of this package, so reading it cannot
    fail in a complete installation.
    """
    text = files("trunkline.contracts.models").joinpath(FILE_NAME).read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), PriceList)


def installed_prices(own: Mapping[str, Price]) -> PriceTable:
    """Return the prices of an installation: those of its ``[models.prices]``, and for other models the shipped
    list's.

    A plugin obtains its own with ``settings.section(ModelsSettings).prices``.
    """
    shipped = read_price_list()
    return PriceTable(own, fallback=PriceTable(shipped.prices, shipped.version))
