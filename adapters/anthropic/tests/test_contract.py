"""The adapter contract over Anthropic's Messages API."""

import pytest

from trunkline import Secret
from trunkline.api.model import ModelAdapter
from trunkline.testing.adapter_suite import ScriptedProviderSuite
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_anthropic.adapter import AnthropicAdapter
from trunkline_anthropic.settings import AnthropicSettings


class TestMessages(ScriptedProviderSuite):
    @pytest.fixture(autouse=True)
    def _environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def adapter(self, provider: ScriptedProvider, key: str) -> ModelAdapter:
        self.monkeypatch.setenv("CANARY_KEY", key)
        secret = Secret(env="CANARY_KEY")
        return AnthropicAdapter(AnthropicSettings(base_url=provider.address, api_key=secret))
