"""Prices: the cost of usage, upper bounds before a request, the shipped list, and what the settings refuse."""

from pathlib import Path

import pytest

from trunkline import Message
from trunkline.api.model import MediaUsage, ModelRequest, Price, PriceTable, Rate, Usage, installed_prices
from trunkline.config import InvalidConfig, load_config
from trunkline.contracts.models.price_list import read_price_list
from trunkline.contracts.tools.messages import ToolSchema
from trunkline.plugins import Plugins

FULL = Price(
    input=3.0, cached=0.3, cache_write=3.75, output=15.0, reasoning=20.0, long_from=1_000, long_input=6.0,
    long_output=22.5, image=0.04, minute=0.006, characters=15.0, max_output=2_000,
)  # fmt: skip


def request(text: str = "x" * 300, **fields: object) -> ModelRequest:
    return ModelRequest(messages=(Message(id="msg_1", role="user", content=text),), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(input_tokens=100), 300),
        (Usage(input_tokens=100, cached_tokens=40, cache_write_tokens=20), 40 * 3 + 12 + 75),
        (Usage(output_tokens=10, reasoning_tokens=4), 6 * 15 + 4 * 20),
        (Usage(input_tokens=1_000, output_tokens=1), 3_015),
        (Usage(input_tokens=1_001, cached_tokens=1, output_tokens=2), 6_045),
        (Usage(input_tokens=1, cached_tokens=5), 2),
    ],
)
def test_the_cost_is_exact(usage: Usage, cost: int) -> None:
    """Every kind of token has its price, also above the limit of long requests. Half a micro-USD rounds up."""
    assert Rate.from_price(FULL).cost(usage) == cost


def test_media_are_priced_by_their_units() -> None:
    """Images each, audio by the minute, spoken text by the million characters."""
    rate = Rate.from_price(FULL)
    assert rate.cost(Usage(), MediaUsage(images=2)) == 80_000
    assert rate.cost(Usage(), MediaUsage(seconds=30)) == 3_000
    assert rate.cost(Usage(), MediaUsage(characters=100)) == 1_500


def test_the_bound_covers_the_longest_answer() -> None:
    """The limit of the request, else that of the model, else 32 000 tokens."""
    rate, tokens = Rate.from_price(FULL), 108
    question = tokens * 3.75
    assert rate.estimate(request()) == question == 405
    assert rate.max_cost(request(max_tokens=10)) == question + 200
    assert rate.max_cost(request()) == question + 2_000 * 20
    plain = Rate.from_price(Price(input=1.0, output=1.0))
    assert plain.max_cost(request()) == tokens + 32_000


def test_the_bound_counts_tools_and_long_requests() -> None:
    """The schemas of tools are input; above the limit the higher prices hold."""
    rate = Rate.from_price(FULL)
    tool = ToolSchema(name="look", description="d" * 300, parameters={"type": "object"})
    assert rate.estimate(request(tools=(tool,))) > rate.estimate(request()) + 375
    assert rate.estimate(request("x" * 3_000)) == 1_008 * 6


def test_the_owner_prices_come_first() -> None:
    """Also the owner's patterns come before the exact names of the shipped list."""
    shipped = PriceTable({"a/x": Price(input=1.0, output=1.0), "b/x": Price(input=2.0, output=2.0)}, "v1")
    table = PriceTable({"a/*": Price(input=9.0, output=9.0)}, fallback=shipped)
    rates = [table.find_rate(label) for label in ("a/x", "b/x", "c/x")]
    assert [rate and rate.version for rate in rates] == ["trunkline.toml 9/9/9", "v1", None]


def test_the_shipped_list_is_valid() -> None:
    """Local models are free; a price is plausible, and cached input never costs more than other input."""
    prices = read_price_list()
    table = installed_prices({})
    for label in ("ollama/llama3.2", "ollama", "offline"):
        rate = table.find_rate(label)
        assert rate is not None and rate.cost(Usage(input_tokens=10**6, output_tokens=10**6)) == 0
    for name, price in prices.prices.items():
        assert 0 <= (price.cached or 0) <= price.input <= 200 and 0 <= price.output <= 1_000, name
        assert price.long_from is None or price.long_input is not None, name
    assert table.find_rate("openai/unheard-of") is None


@pytest.mark.parametrize(
    ("label", "price"),
    [
        ("openai/gpt-5.5-2026-04-23", "5/0.5/30"),
        ("openai/gpt-5.5-pro", "30/30/180"),
        ("anthropic/claude-sonnet-5-5-20261001", "2/0.1/10"),
        ("anthropic/claude-sonnet-5", "2/0.2/10"),
        ("bedrock/eu.anthropic.claude-opus-5-5", "4.4/0.22/22"),
        ("bedrock/global.anthropic.claude-opus-5-5", "4/0.2/20"),
        ("gemini/gemini-3.8-flash", "0.75/0.075/3.75"),
        ("groq/openai/gpt-oss-120b", "0.15/0.075/0.6"),
    ],
)
def test_the_most_specific_pattern_holds(label: str, price: str) -> None:
    """A dated snapshot has the price of its model, and a variant of another price is not taken for it."""
    rate = installed_prices({}).find_rate(label)
    assert rate is not None and rate.name.split()[0] == price


def test_the_default_models_have_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newcomer who sets only a key sees what answers cost."""
    for vendor in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{vendor}_API_KEY", "sk-none")
    plugins = Plugins.load(load_config(tmp_path))
    defaults = {one.item.name: one.item.default_model for one in plugins.models()}
    named = {name: model for name, model in defaults.items() if model}
    assert {"openai", "anthropic", "gemini"} <= named.keys()
    table = installed_prices({})
    assert [name for name, model in named.items() if table.find_rate(f"{name}/{model}") is None] == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("input = -0.1, output = 1", "input must be a number >= 0"),
        ('input = 1, output = 1, currency = "EUR"', "currency cannot be 'EUR'"),
        ("input = 1, output = inf", "output must be a number <= 1000000"),
        ("input = 1, output = nan", "output must be"),
        ("input = 1", "output is missing"),
        ("input = 1, output = 1, cache = 1", "cache is not a setting"),
        ("input = 1, output = 1, long_from = 0", "long_from must be"),
    ],
)
def test_a_price_that_cannot_be_is_refused(tmp_path: Path, line: str, reason: str) -> None:
    """The error names the key and the line of ``trunkline.toml``."""
    (tmp_path / "trunkline.toml").write_text(f'[models.prices]\n"a/x" = {{ {line} }}\n')
    with pytest.raises(InvalidConfig) as raised:
        load_config(tmp_path, environ={})
    text = str(raised.value)
    assert reason in text.replace("models.prices.a/x.", "") and "trunkline.toml" in text
