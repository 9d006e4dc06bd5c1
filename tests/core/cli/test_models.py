"""``trunkline models``: what the configured adapters list."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trunkline.testing.scripted_provider import ScriptedProvider

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def settings_for(provider: ScriptedProvider) -> dict[str, str]:
    return {"TRUNKLINE_ADAPTERS__OPENAI__BASE_URL": provider.url}


def listed(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return {one["adapter"]: one for one in json.loads(done.stdout)["adapters"]}


def test_the_models_of_a_configured_adapter_are_listed(trunkline: Run, home: Path) -> None:
    """With their prices; an adapter without key and address is not asked."""
    home.mkdir()
    (home / "trunkline.toml").write_text('[models.prices."openai/small"]\ninput = 2.0\noutput = 8.0\n')
    with ScriptedProvider(models=("small", "big")) as provider:
        done = trunkline("models", "openai", env=settings_for(provider))
        found = listed(trunkline("models", "--json", env=settings_for(provider)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["MODEL", "CONTEXT", "ANSWER", "PRICE", "ABILITIES"]
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == ["openai/big", "openai/small"]
    assert "anthropic" not in found and "gemini" not in found
    assert [model["price"] for model in found["openai"]["models"]] == ["", "2/2/8"]


def test_lists_are_kept_for_a_day_unless_refreshed(trunkline: Run, home: Path) -> None:
    """The vendor is asked once; ``--refresh`` asks again."""
    with ScriptedProvider(models=("one",)) as provider:
        listed(trunkline("models", "openai", "--json", env=settings_for(provider)))
        again = listed(trunkline("models", "openai", "--json", env=settings_for(provider)))
        assert len(provider.requests) == 1 and len(again["openai"]["models"]) == 1
        listed(trunkline("models", "openai", "--refresh", "--json", env=settings_for(provider)))
        assert len(provider.requests) == 2
    (home / "cache" / "models.json").write_text("not JSON")
    with ScriptedProvider(models=("two",)) as provider:
        found = listed(trunkline("models", "openai", "--json", env=settings_for(provider)))
    assert [model["name"] for model in found["openai"]["models"]] == ["openai/two"]


def test_a_vendor_that_does_not_answer_is_named(trunkline: Run) -> None:
    """The status says that no list could be made; the key is in no text."""
    env = {"TRUNKLINE_ADAPTERS__OPENAI__BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "sk-canary-123"}
    done = trunkline("models", "openai", env=env)
    assert done.returncode == 1
    assert (
        "openai did not list its models: nothing answers at its address" in done.stderr
        and "canary" not in done.stderr
    )


def test_an_unknown_adapter_is_refused_with_those_that_are_configured(trunkline: Run) -> None:
    """The offline adapter is always there."""
    done = trunkline("models", "opnai")
    assert done.returncode == 1
    assert "No adapter 'opnai' is configured" in done.stderr and "offline" in done.stderr


def test_chosen_shows_the_model_and_setting_for_each_purpose(trunkline: Run, home: Path) -> None:
    """Nobody is asked. A plugin's own purpose is listed, a file that cannot be read is an error, and so is a block that
    does not exist."""
    memory = home / "memory"
    (memory / "blocks" / "garden").mkdir(parents=True)
    (memory / "preferences.toml").write_text('[models]\nsummary = "openai/small"\nmy-plugin = "openai/own"\n')
    (memory / "blocks" / "garden" / "block.toml").write_text('model = "ollama/llama3.2"\n')
    with ScriptedProvider() as provider:
        env = settings_for(provider)
        done = trunkline("models", "--chosen", "--block", "garden", "--json", env=env)
        table = trunkline("models", "--chosen", "--block", "garden", env=env).stdout
        assert not provider.requests
    assert done.returncode == 0, done.stderr
    found = {one["purpose"]: (one["model"], one["source"]) for one in json.loads(done.stdout)["models"]}
    assert found["chat"] == found["learn"] == ("ollama/llama3.2", "model in block.toml")
    assert found["summary"] == ("openai/small", "models.summary in preferences.toml")
    assert found["my-plugin"][0] == "openai/own" and found["vision"][0] == found["search"][0] == ""
    assert "PURPOSE" in table and "DECIDED BY" in table and "/model in a conversation" in table
    assert trunkline("models", "--chosen", "--block", "attic", env=env).returncode == 1
    default = json.loads(trunkline("models", "--chosen", "--json", env=env).stdout)["models"][0]
    assert default["model"] == "openai" and "[adapters.openai]" in default["source"]
    (memory / "preferences.toml").write_text("model = \n")
    broken = trunkline("models", "--chosen", env=env)
    assert broken.returncode == 1 and "preferences.toml" in broken.stderr
