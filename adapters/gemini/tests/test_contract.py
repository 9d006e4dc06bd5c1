"""The adapter contract over the Gemini API."""

from collections.abc import Mapping
from typing import ClassVar

import pytest

from trunkline import Secret
from trunkline.api.model import ModelAdapter
from trunkline.testing.adapter_suite import ScriptedProviderSuite, SituationName
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_gemini.adapter import GeminiAdapter
from trunkline_gemini.settings import GeminiSettings


class TestGeneratedContent(ScriptedProviderSuite):
    lacks: ClassVar[Mapping[SituationName, str]] = {
        "bad_arguments": "the vendor sends arguments as objects, and MALFORMED_FUNCTION_CALL in place of other ones",
    }

    @pytest.fixture(autouse=True)
    def _environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def adapter(self, provider: ScriptedProvider, key: str) -> ModelAdapter:
        self.monkeypatch.setenv("CANARY_KEY", key)
        secret = Secret(env="CANARY_KEY")
        return GeminiAdapter(GeminiSettings(base_url=provider.address, api_key=secret))
