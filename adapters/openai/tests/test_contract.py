"""The adapter contract, over both of OpenAI's protocols and in the ways of other vendors."""

import pytest

from trunkline import Secret
from trunkline.api.model import ModelAdapter
from trunkline.testing.adapter_suite import ScriptedProviderSuite
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_openai.adapter import OpenAIAdapter
from trunkline_openai.settings import VENDOR_SETTINGS, Api, OpenAISettings


class OpenAIContract(ScriptedProviderSuite):
    api: Api = "chat"
    section: type[OpenAISettings] = OpenAISettings

    @pytest.fixture(autouse=True)
    def _environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def adapter(self, provider: ScriptedProvider, key: str) -> ModelAdapter:
        self.monkeypatch.setenv("CANARY_KEY", key)
        secret = Secret(env="CANARY_KEY")
        return OpenAIAdapter(self.section(base_url=provider.url, api_key=secret, api=self.api))


class TestChat(OpenAIContract):
    pass


class TestResponses(OpenAIContract):
    api: Api = "responses"


class TestDeepSeek(OpenAIContract):
    section = VENDOR_SETTINGS["deepseek"]


class TestOpenRouter(OpenAIContract):
    section = VENDOR_SETTINGS["openrouter"]


class TestLocalServer(OpenAIContract):
    section = VENDOR_SETTINGS["ollama-v1"]
