"""One conversation that every adapter continues. Each vendor receives all of it, and a turn changes its vendor."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.conversations.messages import Message
from trunkline.testing.script import Hang, Refuse, Reply, ScriptedRequest, answer_by_message
from trunkline.testing.scripted_provider import APIS, ScriptedProvider
from trunkline.testing.vendor_apis.bedrock_authorization import ACCESS_KEY, SECRET_KEY
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

MODELS = (
    "openai/gpt-5.5",
    "anthropic/claude-sonnet-4-6",
    "gemini/gemini-3.8-flash",
    "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "ollama/qwen3:8b",
    "deepseek/deepseek-reasoner",
    "openrouter/anthropic/claude-sonnet-4.5",
    "mistral/mistral-large-latest",
    "sagemaker/llama",
    "mantle/openai.gpt-oss-120b",
    "anthropic/claude-sonnet-4-6",
    "openai/gpt-5.5",
)
"""The models of the turns, in their order. The first vendors come back at the end."""

FALLBACKS = {"anthropic": ["gemini/gemini-3.8-flash"]}
TURN = 'think:I look first. ;; call:list_directory {"path": "."} ;; call:get_current_time {} ;; say:That was turn '


class Script:
    """Answers by the program in the message. After ``hang`` the second step of a turn with Claude never answers, and
    after ``refuse`` it is refused.
    """

    def __init__(self) -> None:
        self.hang = self.refuse = False
        self.hangs = threading.Event()

    def __call__(self, request: ScriptedRequest) -> Reply:
        if str(request.body.get("model", "")).startswith("claude") and request.asked == 1:
            if self.hang:
                self.hangs.set()
                return (Hang(),)
            if self.refuse:
                return (Refuse(status=503, code="overloaded", message="Away."),)
        return answer_by_message(request)


@pytest.fixture(scope="module")
def script() -> Script:
    return Script()


@pytest.fixture(scope="module")
def provider(script: Script) -> Iterator[ScriptedProvider]:
    with ScriptedProvider(script, models=("scripted", "llama", "qwen3:8b")) as serving:
        yield serving


def settings(provider: ScriptedProvider) -> dict[str, Any]:
    """Return the sections of all adapters, each with the address of the one scripted server."""
    with_v1 = ("openai", "deepseek", "openrouter", "mistral", "mantle")
    bases = {f"adapters.{name}.base_url": provider.url for name in with_v1}
    bases |= {f"adapters.{name}.base_url": provider.address for name in ("anthropic", "gemini", "ollama")}
    aws = {f"adapters.{name}.endpoint_url": provider.address for name in ("bedrock", "sagemaker")}
    regions = {f"adapters.{name}.region": "us-east-1" for name in ("bedrock", "sagemaker")}
    return {
        "runtime.provider_adapter": "openai",
        "adapters.openai.api": "responses",
        "adapters.anthropic.parameters": {"reasoning_effort": "low"},
        "adapters.bedrock.parameters": {"reasoning_effort": "low"},
        "plugins.failover.fallbacks": FALLBACKS,
        "plugins.failover.attempts": 1,
        **bases, **aws, **regions,
    }  # fmt: skip


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    none = str(tmp_path_factory.mktemp("aws") / "none")
    keys = dict.fromkeys(
        ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "DEEPSEEK_API_KEY", "OPENROUTER_API_KEY",
         "MISTRAL_API_KEY"), "sk-test",
    )  # fmt: skip
    aws = {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_CONFIG_FILE": none,
        "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
    return {**keys, **aws}


async def test_every_vendor_continues_the_conversation_of_the_others(
    tmp_path: Path, provider: ScriptedProvider, script: Script, environ: dict[str, str]
) -> None:
    """Twelve turns with ten adapters, each with reasoning, two steps of calls and an answer. Every request has the
    whole conversation so far, unchanged, in a form that the vendor's rules permit; a vendor that comes back gets what
    the others wrote. Then a turn whose monitor is killed between its steps goes on with another vendor, and back.
    """
    config = settings(provider)
    async with process_platform(tmp_path / "home", config=config, environ=environ) as running:
        conversation: str | None = None
        stored: list[tuple[str, str]] = []
        for number, model in enumerate(MODELS):
            provider.forget()
            turn = await running.say(f"{TURN}{number}.", conversation=conversation, model=model)
            conversation = turn.accepted.conversation
            assert turn.ended.code is None, (model, turn.ended)
            assert turn.text.strip() == f"That was turn {number}."
            stored = await transcript(running, conversation)
            for request in provider.answer_requests:
                sent = heard(request)
                assert sent == stored[: len(sent)], (model, len(sent))
            assert len(heard(provider.answer_requests[-1])) == len(stored) - 1
        assert len(stored) == 6 * len(MODELS)
        assert conversation is not None
        await swapped_half_way(running, provider, script, conversation)
    assert provider.faults == []


async def swapped_half_way(
    running: ProcessPlatform, provider: ScriptedProvider, script: Script, conversation: str
) -> None:
    """Kill the monitor while Claude is silent after its first tool step. Claude is away then, Gemini takes the next
    step, and Claude the last one.
    """
    provider.forget()
    script.hang = True
    accepted = await running.send(
        f"{TURN}last.", conversation=conversation, model="anthropic/claude-sonnet-4-6"
    )
    with anyio.fail_after(60):
        while not script.hangs.is_set():  # noqa: ASYNC110 - it is set in the server's thread
            await anyio.sleep(0.02)
    first, second = provider.answer_requests
    running.kill("monitor")
    script.hang, script.refuse = False, True
    await running.restart("monitor")
    turn = await running.answer(accepted)
    assert turn.ended.code is None, turn.ended
    assert turn.text.strip() == "That was turn last."
    again, gemini, claude = provider.answer_requests[2:]
    assert again.body == second.body, "after the kill Claude gets the same request, with its signed reasoning"
    assert "signature" in json.dumps(second.body["messages"][-2:])
    assert gemini.path.endswith(":streamGenerateContent")
    assert claude.path.endswith("/messages")
    stored = await transcript(running, conversation)
    assert heard(first) == stored[: len(heard(first))]
    assert heard(gemini) == stored[: len(heard(gemini))]
    assert heard(claude) == stored[:-1]


async def transcript(running: ProcessPlatform, conversation: str) -> list[tuple[str, str]]:
    """Return the stored conversation: each text and call with its role."""
    view = await running.gateway.conversation(conversation, include_tools=True)
    return [part for message in view.messages for part in parts_of(message)]


def parts_of(message: Message) -> Iterator[tuple[str, str]]:
    if message.content.strip():
        yield message.role, message.content.strip()
    yield from ((f"{message.role} calls", call.name) for call in message.tool_calls)


def heard(request: RecordedRequest) -> list[tuple[str, str]]:
    """Return the conversation in a request, without instructions: as ``transcript``, whatever the protocol."""
    kind = next(found for api in APIS if (found := api.wire_format(request)) is not None)
    found: list[tuple[str, str]] = []
    for line in kind.hear(request).lines:
        if line.role not in ("system", "developer"):
            found += [(line.role, line.text.strip())] if line.text.strip() else []
            found += [(f"{line.role} calls", name) for name in line.calls]
    return found
