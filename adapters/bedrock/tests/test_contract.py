"""The adapter contract over Bedrock's ConverseStream."""

import pytest

from trunkline.api.model import ModelAdapter
from trunkline.testing.adapter_suite import ScriptedProviderSuite
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_bedrock.adapter import BedrockAdapter
from trunkline_bedrock.settings import BedrockSettings


class TestConverseStream(ScriptedProviderSuite):
    @pytest.fixture(autouse=True)
    def _environment(self, aws_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def adapter(self, provider: ScriptedProvider, key: str) -> ModelAdapter:
        self.monkeypatch.setenv("AWS_SESSION_TOKEN", key)  # the only secret that is sent
        return BedrockAdapter(BedrockSettings(endpoint_url=provider.address, region="us-east-1"))
