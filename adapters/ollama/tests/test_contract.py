"""The adapter contract, over the scripted server."""

import pytest

from trunkline import Secret
from trunkline.api.model import ModelAdapter
from trunkline.testing.adapter_suite import ScriptedProviderSuite
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_ollama.adapter import OllamaAdapter
from trunkline_ollama.settings import OllamaSettings


class TestOllama(ScriptedProviderSuite):
    lacks = {
        "bad_arguments": "the server parses the arguments and sends an object; what it cannot parse is text"
    }

    @pytest.fixture(autouse=True)
    def _environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def adapter(self, provider: ScriptedProvider, key: str) -> ModelAdapter:
        self.monkeypatch.setenv("CANARY_KEY", key)
        return OllamaAdapter(OllamaSettings(base_url=provider.address, api_key=Secret(env="CANARY_KEY")))
