"""The vendors with a section of their own: settings, adapters, health checks and the table of the documentation."""

from pathlib import Path
from typing import Any

import pytest

from trunkline import Secret
from trunkline.api.model import Call, ModelError, ModelRequest, Text
from trunkline.config import load_config
from trunkline.plugins import Plugins
from trunkline.testing.adapter_suite import conversation_after_calls, request_for
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_openai import plugin
from trunkline_openai.adapter import OpenAIAdapter
from trunkline_openai.listing import listed_models
from trunkline_openai.settings import VENDOR_SETTINGS, Api, OpenAISettings
from trunkline_openai.vendors import OPENAI, OTHER, VENDORS, Vendor

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "openai-compatible-vendors.md"
every_vendor = pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for vendor in (OPENAI, *VENDORS):
        if vendor.key_variable:
            monkeypatch.delenv(vendor.key_variable, raising=False)


class Given:
    """Settings as the plugin loader gives them."""

    home = Path("/nowhere")

    def __init__(self, *sections: OpenAISettings) -> None:
        self._sections = {type(section): section for section in sections}

    def section(self, kind: type[Any]) -> Any:
        return self._sections.get(kind) or kind()


@every_vendor
def test_a_section_with_a_model_makes_an_adapter(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the vendor's name and address. A hosted vendor needs its key, a local server none."""
    section = VENDOR_SETTINGS[vendor.name](model="m")
    before = list(plugin.trunkline_models(settings=Given(section)))
    assert len(before) == (1 if vendor.local else 0)
    if vendor.key_variable:
        monkeypatch.setenv(vendor.key_variable, "sk-x")
    [adapter] = plugin.trunkline_models(settings=Given(section))
    assert (adapter.name, adapter.configured, section.url) == (vendor.name, True, vendor.url)
    assert section.key() == ("no-key-needed" if vendor.local else "sk-x")
    [_, check] = plugin.trunkline_health_checks(settings=Given(section))
    assert check.id == f"adapters.{vendor.name}"


@every_vendor
def test_a_vendor_that_is_not_set_up_is_absent(vendor: Vendor) -> None:
    """No section and no key: no adapter and no check."""
    assert list(plugin.trunkline_models(settings=Given())) == []
    assert [check.id for check in plugin.trunkline_health_checks(settings=Given())] == ["adapters.openai"]


def test_a_key_alone_makes_an_adapter_that_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be named, and nobody's text goes there unasked."""
    monkeypatch.setenv("GROQ_API_KEY", "gsk-x")
    [adapter] = plugin.trunkline_models(settings=Given())
    assert (adapter.name, adapter.configured) == ("groq", False)


def test_an_address_of_a_vendor_in_the_section_of_openai_is_known() -> None:
    """The vendor's ways are the same, whichever section names its address. A local port says nothing."""
    assert OpenAISettings(base_url="https://openrouter.ai/api/v1").server.name == "openrouter"
    assert OpenAISettings(base_url="https://api.deepseek.com").vendor_name == "deepseek"
    assert OpenAISettings(base_url="https://eu.api.openai.com/v1").server is OPENAI
    assert OpenAISettings(base_url="http://127.0.0.1:11434/v1").server is OTHER
    assert OpenAISettings(base_url="https://notopenai.com/v1").server is OTHER


@pytest.mark.anyio
async def test_a_section_of_a_file_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configuration is read, the plugin declares the adapter, and the adapter answers under the vendor's name."""
    monkeypatch.setenv("WORK_KEY", "gsk-work")
    with ScriptedProvider() as provider:
        (tmp_path / "trunkline.toml").write_text(
            f'[adapters.groq]\nbase_url = "{provider.url}"\nmodel = "llama"\napi_key = {{ env = "WORK_KEY" }}\n'
            'parameters = { reasoning_effort = "low" }\n'
            "[adapters.ollama-v1]\n"
            f'base_url = "{provider.url}"\n'
        )
        adapters = {one.item.name: one.item for one in Plugins.load(load_config(tmp_path)).models()}
        assert {"groq", "ollama-v1"} <= set(adapters)
        groq = adapters["groq"]
        assert (groq.vendor, groq.structured) == ("groq", False)
        request = request_for("say:x")
        assert [event async for event in groq.stream(request)]
        await groq.aclose()
    asked = provider.answer_requests[0]
    assert asked.headers["authorization"] == "Bearer gsk-work"
    assert asked.body["reasoning_effort"] == "low"


@pytest.mark.anyio
async def test_a_missing_key_names_the_vendors_variable() -> None:
    """So that one knows what to set."""
    adapter = OpenAIAdapter(VENDOR_SETTINGS["groq"](api_key=Secret(env="NO_SUCH_KEY"), model="m"))
    with pytest.raises(ModelError, match="NO_SUCH_KEY"):
        [event async for event in adapter.stream(request_for("x"))]
    [_, check] = plugin.trunkline_health_checks(settings=Given(VENDOR_SETTINGS["groq"](model="m")))
    result = await check.check()
    assert (result.status, "GROQ_API_KEY" in result.hint) == ("warning", True)


@every_vendor
def test_the_page_of_vendors_has_the_same_table(vendor: Vendor) -> None:
    """Name, address and variable of each vendor are in the how-to."""
    [row] = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{vendor.name}` ")]
    for part in (
        vendor.title,
        f"`{vendor.url}`",
        f"`{vendor.key_variable}`" if vendor.key_variable else "none",
    ):
        assert part in row
    cells = [cell.strip() for cell in row.split("|")]
    abilities = (vendor.structured, vendor.embeds, vendor.transcribes, vendor.speaks)
    assert cells[5:9] == [*map(_yes, abilities)]
    assert not vendor.reads


def _yes(ability: bool) -> str:
    return "yes" if ability else ""


def test_lists_of_models_tell_windows_and_abilities() -> None:
    """Each vendor lists them in a form of its own; Together answers with the bare list."""
    [router] = listed_models(
        {
            "data": [
                {
                    "id": "openai/gpt-5",
                    "context_length": 400_000,
                    "architecture": {"input_modalities": ["text", "image", "file"]},
                    "top_provider": {"max_completion_tokens": 128_000},
                    "supported_parameters": ["tools", "structured_outputs", "reasoning", "seed"],
                }
            ]
        }
    )
    assert (router.context_window, router.max_output) == (400_000, 128_000)
    assert router.abilities == {"tools", "structured", "reasoning", "images", "documents"}
    [mistral] = listed_models(
        {
            "data": [
                {
                    "id": "mistral-medium",
                    "max_context_length": 131_072,
                    "capabilities": {"function_calling": True, "vision": False},
                }
            ]
        }
    )
    assert (mistral.context_window, mistral.abilities) == (131_072, {"tools"})
    [fireworks] = listed_models({"data": [{"id": "f", "supports_tools": True, "supports_image_input": True}]})
    assert fireworks.abilities == {"tools", "images"}
    [together] = listed_models([{"id": "t", "context_length": 8192, "type": "chat"}])
    assert (together.context_window, together.abilities) == (8192, None)


@pytest.mark.anyio
@pytest.mark.parametrize(("api", "path"), [("chat", "/v1/chat/completions"), ("responses", "/v1/responses")])
async def test_mantle_is_asked_with_the_bedrock_api_key(
    monkeypatch: pytest.MonkeyPatch, api: Api, path: str
) -> None:
    """Bedrock's OpenAI-compatible endpoint takes both protocols; the key is that of AWS_BEARER_TOKEN_BEDROCK, and tools
    and their results go back and forth as anywhere.
    """
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-canary")
    kind = VENDOR_SETTINGS["mantle"]
    assert kind().url == "https://bedrock-mantle.us-east-1.api.aws/v1"
    assert kind().usable
    async with ScriptedProvider().serving() as provider:
        adapter = OpenAIAdapter(kind(base_url=provider.url, model="openai.gpt-oss-120b", api=api))
        calls = [event async for event in adapter.stream(request_for('call:look {"at": "sea"}'))]
        request = ModelRequest(messages=conversation_after_calls(), model="openai.gpt-oss-120b")
        answer = [event async for event in adapter.stream(request)]
        await adapter.aclose()
    assert [event.call.arguments for event in calls if isinstance(event, Call)] == [{"at": "sea"}]
    assert "waves" in "".join(event.text for event in answer if isinstance(event, Text))
    assert {one.path for one in provider.requests} == {path}
    assert {one.headers["authorization"] for one in provider.requests} == {"Bearer bedrock-api-key-canary"}
    assert adapter.vendor == "aws.bedrock"
