"""The prices of models, and the cost of model calls in micro-USD. Exact and without I/O."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from fnmatch import fnmatchcase
from typing import Annotated, Literal

import msgspec

from trunkline.contracts.conversations.messages import Message, Usage
from trunkline.contracts.models.adapter import ModelRequest
from trunkline.contracts.models.media_usage import NO_MEDIA, MediaUsage
from trunkline.contracts.models.token_estimate import estimate_input_tokens, estimate_message_tokens

DEFAULT_MAX_OUTPUT = 32_000
"""The longest answer in tokens that an upper bound assumes if neither the request nor the price names one."""

OWN_PRICES = "trunkline.toml"
"""The version of the prices that the owner sets in ``[models.prices]``."""

Dollars = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price of a model, in US dollars per million tokens unless stated otherwise.

    ``cached`` is the price of input that the vendor reads from its prompt cache, ``cache_write`` of input that the
    vendor writes to it; without them, such input costs ``input``. ``reasoning`` is the price of reasoning tokens, by
    default ``output``. An embedding model has an ``output`` of 0.

    A request with more than ``long_from`` input tokens costs ``long_input``, ``long_cached``, ``long_cache_write`` and
    ``long_output``; each defaults to the price of other requests.

    ``image`` is the price of one image, ``minute`` of one minute of audio, and ``characters`` of a million characters
    of text to speak. ``max_output`` is the longest answer of the model in tokens; it bounds the cost of a request.
    ``context_window`` is the number of tokens that the model accepts.
    """

    input: Dollars
    output: Dollars
    cached: Dollars | None = None
    cache_write: Dollars | None = None
    reasoning: Dollars | None = None
    long_from: Tokens | None = None
    long_input: Dollars | None = None
    long_cached: Dollars | None = None
    long_cache_write: Dollars | None = None
    long_output: Dollars | None = None
    image: Dollars = 0.0
    minute: Dollars = 0.0
    characters: Dollars = 0.0
    max_output: Tokens | None = None
    context_window: Tokens | None = None
    currency: Literal["USD"] = "USD"

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRate:
    """The prices of tokens. A US dollar per million tokens is a micro-USD per token.

    Guarantees: costs are exact decimal numbers; no method raises.

    Not guaranteed: that the vendor bills the tokens that it reported.
    """

    input: Decimal
    cached: Decimal
    cache_write: Decimal
    output: Decimal
    reasoning: Decimal

    def cost(self, usage: Usage) -> Decimal:
        """Return the cost of these tokens in micro-USD. Cached and written tokens are part of the input, reasoning is
        part of the output. Raises nothing.
        """
        fresh = max(0, usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens)
        answer = max(0, usage.output_tokens - usage.reasoning_tokens)
        return (
            fresh * self.input
            + usage.cached_tokens * self.cached
            + usage.cache_write_tokens * self.cache_write
            + answer * self.output
            + usage.reasoning_tokens * self.reasoning
        )

    @property
    def highest_input(self) -> Decimal:
        """The highest price of a token of input, whatever the vendor's cache does. Raises nothing."""
        return max(self.input, self.cached, self.cache_write)

    @property
    def highest_output(self) -> Decimal:
        """The highest price of a token of an answer. Raises nothing."""
        return max(self.output, self.reasoning)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The price of one model, ready to compute with.

    ``version`` identifies the price in the ledger: the version of the shipped list, or ``trunkline.toml`` and the
    price itself, because the owner may change that price at any time.

    Guarantees: the cost of a usage is exact, rounded once to whole micro-USD; half a micro-USD is rounded up.

    Not guaranteed: that an estimate before a request is an upper bound for every tokenizer and every image.
    """

    name: str
    """Input, cached input and output, as ``2.5/1.25/10``, and the other prices that are set."""

    version: str
    base: TokenRate
    long: TokenRate
    long_from: int | None
    price: Price

    @classmethod
    def from_price(cls, price: Price, version: str = OWN_PRICES) -> "Rate":
        """Return the rate of a price from the list of this version. Raises nothing."""
        base = _token_rate(price.input, price.cached, price.cache_write, price.output, price.reasoning)
        cached = price.cached if price.long_cached is None else price.long_cached
        write = price.cache_write if price.long_cache_write is None else price.long_cache_write
        long = _token_rate(
            price.input if price.long_input is None else price.long_input,
            cached,
            write,
            price.output if price.long_output is None else price.long_output,
            price.reasoning if price.long_output is None else None,
        )
        name = _name_of(price)
        full_version = f"{version} {name}" if version == OWN_PRICES else version
        return cls(
            name=name, version=full_version, base=base, long=long, long_from=price.long_from, price=price
        )

    def cost(self, usage: Usage, media: MediaUsage = NO_MEDIA) -> int:
        """Return the cost in micro-USD of what the vendor counted. Raises nothing."""
        exact = self._tokens(usage.input_tokens).cost(usage) + self._media_cost(media)
        return int(exact.to_integral_value(ROUND_HALF_UP))

    def estimate(self, request: ModelRequest) -> int:
        """Return an upper estimate in micro-USD of what the request costs without its answer. Raises nothing."""
        tokens = estimate_input_tokens(request)
        return _ceiling(tokens * self._tokens(tokens).highest_input + self._media_cost(request.media))

    def max_cost(self, request: ModelRequest) -> int:
        """Return an upper estimate in micro-USD of what the request costs with the longest answer that it permits.
        Raises nothing.
        """
        tokens = estimate_input_tokens(request)
        rate = self._tokens(tokens)
        answer = request.max_tokens or self.price.max_output or DEFAULT_MAX_OUTPUT
        media = self._media_cost(request.media)
        return _ceiling(tokens * rate.highest_input + answer * rate.highest_output + media)

    def affordable_tokens(self, messages: tuple[Message, ...], max_cost: int) -> int | None:
        """Return the number of tokens that an answer may have so that question and answer cost at most ``max_cost``
        micro-USD.

        0 or fewer when the question alone is too expensive, None when answers cost nothing. Raises nothing.
        """
        tokens = estimate_message_tokens(messages)
        rate = self._tokens(tokens)
        left = max_cost - tokens * rate.highest_input
        if left < 0:
            return 0
        return int(left // rate.highest_output) if rate.highest_output else None

    def affordable_answer(self, request: ModelRequest, max_cost: int) -> int | None:
        """Return the number of tokens that the answer may have so that request and answer cost at most ``max_cost``
        micro-USD; 0 or fewer if the request alone is too expensive, None if answers cost nothing. Raises nothing.
        """
        tokens = estimate_input_tokens(request)
        rate = self._tokens(tokens)
        left = max_cost - tokens * rate.highest_input - self._media_cost(request.media)
        return int(left // rate.highest_output) if rate.highest_output else None

    def _media_cost(self, media: MediaUsage) -> Decimal:
        """Return the cost in micro-USD of what is not billed by tokens."""
        return (
            media.images * _decimal(self.price.image) * 1_000_000
            + _decimal(media.seconds) / 60 * _decimal(self.price.minute) * 1_000_000
            + media.characters * _decimal(self.price.characters)
        )

    def _tokens(self, input_tokens: int) -> TokenRate:
        return self.long if self.long_from is not None and input_tokens > self.long_from else self.base


class PriceTable:
    """The prices of models, by ``adapter/model``.

    ``version`` names these prices in the ledger. Where this table has no price, ``fallback`` is asked.
    ``installed_prices`` returns the table of an installation.

    Guarantees: the same labels have the same rate as long as the process runs.

    Not guaranteed: that a price is the vendor's present one.
    """

    def __init__(
        self,
        prices: Mapping[str, Price],
        version: str = OWN_PRICES,
        fallback: "PriceTable | None" = None,
    ) -> None:
        self._prices = prices
        self._version = version
        patterns = sorted((name for name in prices if "*" in name), key=len, reverse=True)
        self._patterns = [(_literal_beginning(pattern), pattern) for pattern in patterns]
        self._rates: dict[str, Rate] = {}  # of the names that were looked up: most processes need none or one
        self._fallback = fallback

    def find_rate(self, *labels: str) -> Rate | None:
        """Return the rate of the first of these labels that has one; exact names come before patterns, and the longer
        pattern comes first. None if no label has a price. Raises nothing.
        """
        rate = self._own_rate(labels)
        return rate if rate is not None or self._fallback is None else self._fallback.find_rate(*labels)

    def find_context_window(self, label: str) -> int | None:
        """Return the context window of a model in tokens; None if it is not known. A price of the owner that does not
        name it does not hide the shipped one. Raises nothing.
        """
        rate = self._own_rate((label,))
        if rate is not None and rate.price.context_window is not None:
            return rate.price.context_window
        return None if self._fallback is None else self._fallback.find_context_window(label)

    def _own_rate(self, labels: Sequence[str]) -> Rate | None:
        for label in labels:
            if label in self._prices and "*" not in label:
                return self._rate_of(label)
        for beginning, pattern in self._patterns:  # to compile all hundred patterns takes 6 ms
            if any(label.startswith(beginning) and fnmatchcase(label, pattern) for label in labels):
                return self._rate_of(pattern)
        return None

    def _rate_of(self, name: str) -> Rate:
        """Return the rate of the price with this name, which is computed once."""
        if name not in self._rates:
            self._rates[name] = Rate.from_price(self._prices[name], self._version)
        return self._rates[name]


def _literal_beginning(pattern: str) -> str:
    """Return the text before the first wildcard of a pattern."""
    return re.split(r"[*?[]", pattern, maxsplit=1)[0]


def _token_rate(
    input: float, cached: float | None, write: float | None, output: float, reasoning: float | None
) -> TokenRate:
    return TokenRate(
        input=_decimal(input),
        cached=_decimal(input if cached is None else cached),
        cache_write=_decimal(input if write is None else write),
        output=_decimal(output),
        reasoning=_decimal(output if reasoning is None else reasoning),
    )


_FURTHER_PRICES = (
    "cache_write", "reasoning", "long_from", "long_input", "long_cached", "long_cache_write", "long_output", "image",
    "minute", "characters",
)  # fmt: skip
"""The prices besides input, cached input and output, which a name contains only if they are set."""


def _name_of(price: Price) -> str:
    cached = price.input if price.cached is None else price.cached
    numbers = "/".join(_text(each) for each in (price.input, cached, price.output))
    more = [f"{name}={_text(value)}" for name in _FURTHER_PRICES if (value := getattr(price, name))]
    return " ".join([numbers, *more])


def _decimal(number: float) -> Decimal:
    return Decimal(str(number))


def _text(number: float) -> str:
    return f"{_decimal(number).normalize():f}"


def _ceiling(cost: Decimal) -> int:
    return int(cost.to_integral_value(ROUND_CEILING))
