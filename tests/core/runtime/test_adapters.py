"""The choice of the answering adapter is the owner's. An unset key is an error, and a merely installed adapter
receives no text."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import msgspec
import pytest

import trunkline
from trunkline.api.model import Finish
from trunkline.config import load_config
from trunkline.contracts.models.adapter import ModelAdapter, ModelEvent, ModelRequest
from trunkline.errors import ConfigError
from trunkline.plugins import Plugins
from trunkline.runtime.adapter_selection import check_adapters, default_adapter, describe_default_adapter
from trunkline.testing.platform import clean_environ


class Acme(ModelAdapter):
    """Answers at once, wherever it is asked."""

    name = "acme"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield Finish(reason="stop")


class AcmeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: str = ""


class AcmePlugin:
    """An adapter's plugin of a third party."""

    @trunkline.hookimpl
    def trunkline_config(self) -> Iterable[trunkline.ConfigSection]:
        return [trunkline.ConfigSection("adapters", "acme", AcmeSettings)]

    @trunkline.hookimpl
    def trunkline_models(self) -> Iterable[ModelAdapter]:
        return [Acme()]


def asked(home: Path, toml: str, monkeypatch: pytest.MonkeyPatch, *plugins: object, **environ: str) -> str:
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "NOPE"))]:
        monkeypatch.delenv(name)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    (home / "trunkline.toml").write_text(toml)
    config = load_config(home, environ={**clean_environ(), **environ})
    loaded = Plugins.load(config, extra=plugins)
    assert describe_default_adapter(config, loaded).startswith(default_adapter(config, loaded))
    return default_adapter(config, loaded)


@pytest.mark.parametrize(
    ("toml", "environ", "answers"),
    [
        ("", {}, "offline"),
        ("", {"OPENAI_API_KEY": "sk-x"}, "openai"),
        ('[runtime]\nprovider_adapter = "offline"\n', {"OPENAI_API_KEY": "sk-x"}, "offline"),
        ('[adapters.openai]\nbase_url = "http://127.0.0.1:9/v1"\n', {}, "openai"),
        ('[adapters.openai]\napi_key = { env = "NOPE_KEY" }\n', {"NOPE_KEY": "sk-x"}, "openai"),
        ('[adapters.acme]\nmodel = "a"\n', {"OPENAI_API_KEY": "sk-x"}, "acme"),
        (
            '[runtime]\nprovider_adapter = "offline"\n[adapters.openai]\napi_key = { env = "NOPE_KEY" }\n',
            {},
            "offline",
        ),
    ],
)
def test_the_owner_chooses_the_adapter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toml: str, environ: dict[str, str], answers: str
) -> None:
    """The choice is by name, by settings, or by the key of a bundled adapter; settings count before a key."""
    assert (
        asked(tmp_path, toml, monkeypatch, AcmePlugin() if "acme" in toml else object(), **environ) == answers
    )


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        (
            '\n[adapters.openai]\napi_key = { env = "NOPE_KEY" }\n',
            "NOPE_KEY is not set, which adapters.openai.api_key",
        ),
        (
            '[adapters.openai]\nbase_url = "http://127.0.0.1:9/v1"\napi_key = "$NOPE_KEY"\n',
            "NOPE_KEY is not set",
        ),
        ('[adapters.openai]\nmodel = "gpt-5"\n', "has settings, but the adapter lacks a key"),
        (
            '[runtime]\nprovider_adapter = "openai"\n[adapters.openai]\napi_key = { env = "NOPE_KEY" }\n',
            "NOPE_KEY is not set",
        ),
        (
            '[adapters.openai]\nbase_url = "http://127.0.0.1:9/v1"\n[adapters.acme]\nmodel = "a"\n',
            "Several model adapters have settings (acme, openai)",
        ),
    ],
)
def test_an_unusable_adapter_choice_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toml: str, said: str
) -> None:
    """Never another adapter in its place, and no guess between several; the sentence says what to do."""
    with pytest.raises(ConfigError) as refused:
        asked(tmp_path, toml, monkeypatch, AcmePlugin())
    assert said in refused.value.sentence and refused.value.hint


def test_a_misspelled_section_stops_the_start(tmp_path: Path) -> None:
    """A budget or a redaction under a wrong name would have no effect, and nobody would notice it."""
    (tmp_path / "trunkline.toml").write_text("[plugins.budgets]\nmax_daily_spend = 5\n")
    with pytest.raises(ConfigError, match=r"plugins\.budgets belongs to no plugin .*line 1") as refused:
        check_adapters(load_config(tmp_path, environ=clean_environ()), ())
    assert refused.value.hint == "Did you mean plugins.budget?"


@pytest.mark.parametrize("command", [["say", "hello"], ["doctor"]])
def test_an_unset_key_is_reported_and_no_offline_answer_is_given(tmp_path: Path, command: list[str]) -> None:
    """A command says which variable is missing and where it is named, and fails."""
    (tmp_path / "trunkline.toml").write_text(
        '[gateway]\nport = 0\n[adapters.openai]\napi_key = { env = "NOPE_KEY" }\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "trunkline.cli.main", *command],
        env={**clean_environ(), "TRUNKLINE_HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "NOPE_KEY is not set" in done.stdout + done.stderr
    assert (
        "trunkline.toml, line 4" in done.stdout + done.stderr
        and "I answer without a model" not in done.stdout
    )


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        (("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "openai"),
        (("GEMINI_API_KEY", "ANTHROPIC_API_KEY"), "anthropic"),
        (("GEMINI_API_KEY",), "gemini"),
        (("GROQ_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "OLLAMA_HOST"), "offline"),
    ],
)
def test_a_further_key_does_not_change_who_receives_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...], chosen: str
) -> None:
    """Keys of other programs are in many environments. The description names the adapters that could be chosen."""
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert asked(tmp_path, "", monkeypatch, **dict.fromkeys(keys, "x")) == chosen
