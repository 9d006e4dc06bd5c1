"""The cost of model calls: tokens times the configured price. Exact, in millionths of a US dollar. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fnmatch import fnmatchcase

from trunkline.config.settings import Price
from trunkline.contracts.conversations.messages import Message, Usage

MIN_BYTES_PER_TOKEN = 3
"""Bytes per token in the estimate before a call: fewer than tokenizers need in any common language (about 4
in English), so that the estimate is rather too high."""

TOKENS_PER_MESSAGE = 8
"""Tokens of a message besides its text."""


TOKENS_PER_IMAGE = 6_000
"""Estimated tokens of a picture: more than the providers' documented formulas give for usual sizes (OpenAI 85
and 170 a tile, Anthropic width times height divided by 750)."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A price; a dollar per million tokens is a millionth of a dollar per token."""

    input: Decimal
    cached: Decimal
    output: Decimal

    @classmethod
    def from_price(cls, price: Price) -> "Rate":
        """Return the rate of a configured price."""
        cached = price.input if price.cached is None else price.cached
        return cls(*(Decimal(str(each)) for each in (price.input, cached, price.output)))

    @property
    def name(self) -> str:
        """Input, cached input and output, as ``2.5/1.25/10``: the version of the price in a ledger."""
        return "/".join(f"{each.normalize():f}" for each in (self.input, self.cached, self.output))

    def cost(self, usage: Usage) -> int:
        """Return the cost of these tokens. Cached tokens are part of the input."""
        fresh = max(0, usage.input_tokens - usage.cached_tokens)
        exact = fresh * self.input + usage.cached_tokens * self.cached + usage.output_tokens * self.output
        return int(exact.to_integral_value(ROUND_HALF_UP))

    def affordable_tokens(self, messages: tuple[Message, ...], max_cost: int) -> int | None:
        """Return the number of tokens that an answer may have so that question and answer cost at most
        ``max_cost``.

        0 or fewer when the question alone is too expensive, None when answers cost nothing.
        """
        left = max_cost - estimate_max_tokens(messages) * max(self.input, self.cached)
        if left < 0:
            return 0
        return int(left // self.output) if self.output else None


class PriceTable:
    """The configured prices, by ``adapter/model``."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._exact = {name: Rate.from_price(price) for name, price in prices.items() if "*" not in name}
        patterns = sorted((name for name in prices if "*" in name), key=len, reverse=True)
        self._patterns = [(name, Rate.from_price(prices[name])) for name in patterns]

    def find_rate(self, *labels: str) -> Rate | None:
        """Return the rate of the first of these labels that has one; exact names come before patterns."""
        for label in labels:
            if label in self._exact:
                return self._exact[label]
        return next(
            (rate for name, rate in self._patterns for label in labels if fnmatchcase(label, name)), None
        )


def estimate_max_tokens(messages: tuple[Message, ...]) -> int:
    """Return an upper estimate of the messages' tokens, by their bytes and pictures."""
    return sum(
        -(-len(message.content.encode(errors="replace")) // MIN_BYTES_PER_TOKEN)
        + TOKENS_PER_MESSAGE
        + len(message.images) * TOKENS_PER_IMAGE
        for message in messages
    )
