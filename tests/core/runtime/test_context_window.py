"""The context windows of models: the owner's, the shipped ones, and the default."""

from trunkline.config.settings import ModelsSettings, MonitorSettings, Settings
from trunkline.contracts.models.prices import Price
from trunkline.runtime.context_window import ContextWindows


def windows(**models: object) -> ContextWindows:
    return ContextWindows(
        Settings(models=ModelsSettings(**models), monitor=MonitorSettings(context_window=32_000))  # type: ignore[arg-type]
    )


def test_the_shipped_list_knows_the_windows_of_vendors_models() -> None:
    """No setting is needed for a model that a vendor offers, also on Bedrock and at a compatible vendor."""
    found = windows()
    assert found.window("anthropic/claude-haiku-4-5") == 200_000
    assert found.window("openai/gpt-4o-mini") == 128_000
    assert found.window("bedrock/eu.amazon.nova-pro-v1:0") == 300_000
    assert found.window("groq/openai/gpt-oss-20b") == 131_072


def test_an_unknown_model_has_the_default() -> None:
    """It is known of no model that nobody named."""
    found = windows()
    assert (found.window("openai/unheard-of"), found.find("openai/unheard-of")) == (32_000, None)


def test_the_owner_has_precedence() -> None:
    """Over the shipped list, by the table of windows or by a price; a price without a window hides none."""
    found = windows(
        context_windows={"openai/gpt-4o": 64_000},
        prices={
            "openai/gpt-4o-mini": Price(input=1, output=1),
            "openai/own": Price(input=1, output=1, context_window=9_000),
        },
    )
    names = ("openai/gpt-4o", "openai/gpt-4o-mini", "openai/own")
    assert [found.window(name) for name in names] == [64_000, 128_000, 9_000]


def test_a_large_window_does_not_enlarge_the_budget_of_the_context() -> None:
    """Only a window that the owner set does; a small window makes the budget smaller."""
    found = windows(
        context_windows={"openai/gpt-4o": 64_000},
        prices={"openai/own": Price(input=1, output=1, context_window=9_000)},
    )
    names = ("anthropic/claude-opus-5", "openai/gpt-4o", "openai/own", "openai/unheard-of")
    assert [found.budgeted_window(name) for name in names] == [32_000, 64_000, 9_000, 32_000]
