"""Settings that do not work: each adapter refuses them at the start or at the first call, with the section and the
cure, and with no key.
"""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trunkline import ConfigError, Message, Secret
from trunkline._util.secrets.log_redactor import LogRedactor
from trunkline.api.model import ModelAdapter, ModelError, ModelRequest
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.testing.vendor_apis.bedrock_authorization import ACCESS_KEY, SECRET_KEY
from trunkline.workers.monitor.model_errors import ModelErrorFormatter
from trunkline_anthropic.adapter import AnthropicAdapter
from trunkline_anthropic.settings import AnthropicSettings
from trunkline_bedrock.adapter import BedrockAdapter
from trunkline_bedrock.settings import BedrockSettings
from trunkline_gemini.adapter import GeminiAdapter
from trunkline_gemini.settings import GeminiSettings
from trunkline_ollama.adapter import OllamaAdapter
from trunkline_ollama.settings import OllamaSettings
from trunkline_openai.adapter import OpenAIAdapter
from trunkline_openai.sagemaker import SageMakerAdapter
from trunkline_openai.sagemaker_settings import SageMakerSettings
from trunkline_openai.settings import VENDOR_SETTINGS, OpenAISettings

pytestmark = pytest.mark.anyio

CANARY = "sk-canary-0123456789abcdef"
UNSET = Secret(env="A_KEY_THAT_IS_NOT_SET")
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"

Make = Callable[..., ModelAdapter]

BY_KEY: dict[str, Make] = {
    "openai": lambda url, **more: OpenAIAdapter(OpenAISettings(**_at(f"{url}/v1", **more))),
    "groq": lambda url, **more: OpenAIAdapter(VENDOR_SETTINGS["groq"](**_at(f"{url}/v1", **more))),
    "anthropic": lambda url, **more: AnthropicAdapter(AnthropicSettings(**_at(url, **more))),
    "gemini": lambda url, **more: GeminiAdapter(GeminiSettings(**_at(url, **more))),
    "ollama": lambda url, **more: OllamaAdapter(OllamaSettings(**_at(url, **more))),
}
BY_ACCOUNT: dict[str, Make] = {
    "bedrock": lambda url, **more: BedrockAdapter(
        BedrockSettings(**{"model": CLAUDE, "region": "us-east-1", "endpoint_url": url, **more})
    ),
    "sagemaker": lambda url, **more: SageMakerAdapter(
        SageMakerSettings(**{"model": "llama", "region": "us-east-1", "endpoint_url": url, **more})
    ),
}
ADAPTERS = {**BY_KEY, **BY_ACCOUNT}
every_adapter = pytest.mark.parametrize("name", ADAPTERS)


def _at(url: str, **more: Any) -> dict[str, Any]:
    return {"base_url": url, "api_key": Secret(env="A_KEY"), "model": "a-model", **more}


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("A_KEY", CANARY)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


async def failure(adapter: ModelAdapter, text: str = "say:Calm.") -> tuple[str, str]:
    """Return the fault of the first call, and the line that the owner reads."""
    request = ModelRequest(messages=(Message(id="1", role="user", content=text),))
    with pytest.raises(ModelError) as caught:
        async for _ in adapter.stream(request):
            pass
    await adapter.aclose()
    for secret in (CANARY, SECRET_KEY, ACCESS_KEY):
        assert secret not in f"{caught.value}{caught.value.detail}"
    return caught.value.fault, ModelErrorFormatter(LogRedactor({})).describe(caught.value, adapter.name)


@pytest.mark.parametrize("name", BY_KEY)
async def test_a_key_that_is_not_set_is_named(name: str, nobody: str) -> None:
    """Before anything is sent; the line names the variable."""
    fault, line = await failure(BY_KEY[name](nobody, api_key=UNSET))
    assert fault == "authentication"
    assert "A_KEY_THAT_IS_NOT_SET" in line


@every_adapter
async def test_a_key_that_is_refused_leads_to_the_setting(name: str) -> None:
    """The line says where the key, or the AWS profile, is set."""
    async with ScriptedProvider().serving() as provider:
        fault, line = await failure(ADAPTERS[name](provider.address), "status:401")
    assert fault == "authentication"
    setting = "api_key" if name in BY_KEY else "profile"
    assert f"check {setting} in [adapters.{name}]" in line


@every_adapter
async def test_an_address_without_a_server_leads_to_the_setting(name: str, nobody: str) -> None:
    """The line says where the address is set."""
    fault, line = await failure(ADAPTERS[name](nobody))
    assert fault == "unavailable"
    setting = "base_url" if name in BY_KEY else "endpoint_url"
    assert f"check {setting} in [adapters.{name}]" in line


@every_adapter
async def test_an_unknown_model_leads_to_the_list(name: str) -> None:
    """The line names the setting and the command that lists the models, or the command that gets the model."""
    async with ScriptedProvider(models=("scripted",)).serving() as provider:
        fault, line = await failure(ADAPTERS[name](provider.address), "status:404")
    assert fault == "refused"
    lists = f'check model in [adapters.{name}], or where it was chosen; "trunkline models" lists the names'
    assert (lists in line) or (name == "ollama" and "ollama pull a-model" in line), line


@pytest.mark.parametrize("name", BY_ACCOUNT)
@pytest.mark.parametrize(
    ("given", "says"),
    [({"region": None, "endpoint_url": None}, "region"), ({"profile": "missing"}, "profile")],
)
async def test_a_missing_region_or_profile_is_told(name: str, given: dict[str, Any], says: str) -> None:
    """At the first call, with the setting's name."""
    _, line = await failure(BY_ACCOUNT[name]("http://127.0.0.1:9", **given))
    assert f"{says} in [adapters.{name}]" in line


@every_adapter
def test_an_unknown_parameter_is_refused_at_the_start(name: str) -> None:
    """With its path and the list of those that are taken; a value of the wrong type is refused too."""
    with pytest.raises(ConfigError) as caught:
        ADAPTERS[name]("http://127.0.0.1:9", parameters={"no_such_parameter": 1})
    assert caught.value.sentence == f"adapters.{name}.parameters has no parameter 'no_such_parameter'."
    known = next(one for one in ADAPTERS[name]("http://127.0.0.1:9").parameters if one.takes("a-model"))
    assert known.name in caught.value.hint
    with pytest.raises(ConfigError) as caught:
        ADAPTERS[name]("http://127.0.0.1:9", parameters={known.name: object()})
    assert f"must be of type {known.type}" in caught.value.sentence


@every_adapter
def test_an_address_that_is_none_is_refused_at_the_start(name: str) -> None:
    """With its path; an address with a password is one, too."""
    setting = "base_url" if name in BY_KEY else "endpoint_url"
    for wrong in ("ftp://a.example", "a.example/v1"):
        with pytest.raises(ConfigError) as caught:
            ADAPTERS[name](wrong, **{setting: wrong})
        assert f"adapters.{name}.{setting}" in caught.value.sentence
        assert caught.value.hint
