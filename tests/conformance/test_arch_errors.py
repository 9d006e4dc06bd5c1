"""ARCH-5 and ARCH-6: every way in which a model, a tool or a request can fail has its code and its fixed sentence, and
nothing of what really happened crosses the border (PA-T12, PA-F32, design section 7.7)."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

import trunkline
from trunkline.testing.script import Refuse, Reply, ScriptedRequest, answer_by_message
from trunkline.testing.scripted_provider import ScriptedProvider

from . import contract
from .conftest import ConformancePlatform, OpenPlatform

pytestmark = pytest.mark.anyio

KEY = "sk-proj-Zx81QmVwTn5cLr02"
DETAIL = (
    f'Traceback (most recent call last):\n  File "/srv/vendor/secret_pod.py", line 7\nIncorrect API key {KEY} '
    "at https://internal.vendor.example/v1"
)

FAULTS = {
    "status:401": "provider_error",
    "status:403": "provider_error",
    "status:404": "provider_error",
    "status:429": "provider_error",
    "status:500": "provider_error",
    "status:502": "provider_error",
    "cut:3": "provider_error",
    "quit:3": "provider_error",
    "malformed:3": "provider_error",
    "garbage": "provider_error",
    "empty": "provider_error",
    "stall:3": "provider_error",
    "hang": "provider_error",
    "overflow": "context_overflow",
}
"""What the provider does, and the code for it."""

ONE_ATTEMPT = {"plugins.failover.attempts": 1}
"""Every fault reaches the client, instead of the answer of another attempt."""

REASONS = {
    "status:401": "authentication",
    "status:429": "rate_limited",
    "status:500": "unavailable",
    "status:404": "refused",
    "cut:3": "interrupted",
    "malformed:3": "bad_response",
    "garbage": "bad_response",
    "hang": "timeout",
}
"""The finer reason, which is for the log alone."""


def loud(received: ScriptedRequest) -> Reply:
    """The script; its errors contain every detail that must not be revealed."""
    return tuple(
        Refuse(step.status, step.code, f"{step.message} {DETAIL}") if isinstance(step, Refuse) else step
        for step in answer_by_message(received)
    )


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(loud) as serving:
        yield serving


LEAK = re.compile(
    rb"Traceback|File \"|\.py\b|site-packages|/srv/|/tmp/|/usr/|/home/|/root|/var/|sk-|vendor\.example"
    rb"|127\.0\.0\.1|nats://|Error\(|Exception|errno"
)
WORDS = re.compile(rb"Scripted error|scripted_|HTTP 4|HTTP 5|authentication|rate_limited")
"""What the provider says and the finer reason: for the owner, in ``metadata`` and in OpenAI's message alone."""


def assert_clean(received: bytes | bytearray, running: ConformancePlatform) -> None:
    """Check that these bytes contain no paths, traces, keys, addresses or internal reasons."""
    found = LEAK.findall(bytes(received))
    assert not found, found
    for secret in (
        str(running.home),
        running.platform.token,
        running.platform.instance.bus.password or "-",
        KEY,
    ):
        assert secret.encode() not in received


async def test_ARCH_5_ARCH_6_faults_at_the_gateway(
    open_platform: OpenPlatform, caplog: pytest.LogCaptureFixture
) -> None:
    """Each fault of the provider ends the turn with its code. The finer reason is in the log. Text that had come is
    kept. The message is the code's sentence; why is in ``metadata.detail``, without keys, addresses, paths and
    traces (ADR 0055)."""
    async with open_platform({**ONE_ATTEMPT, "monitor.model_idle_timeout": 1.0}) as running:
        client = running.client
        for program, code in FAULTS.items():
            caplog.clear()
            with caplog.at_level(logging.INFO):
                reply = await client.say(program)
            assert reply.code == code, program
            assert reply.events[-1].data.message == contract.SENTENCES[code]
            assert reply.events[-1].data.metadata["detail"].startswith("openai/")
            if program in REASONS:
                assert f"({REASONS[program]})" in caplog.text, program
            stored = (await client.conversation(reply.conversation)).messages
            assert [message.role for message in stored][:1] == ["user"]
            if reply.text:
                assert stored[-1].content == reply.text
                assert stored[-1].metadata and stored[-1].metadata["partial"] is True
        assert_clean(client.received, running)
        after = await client.say("say:well again", reply.conversation)
        assert after.text == "well again"


async def test_ARCH_5_ARCH_6_faults_at_the_loop(open_platform: OpenPlatform) -> None:
    """The same at ``/engine/chat``."""
    async with (
        open_platform({**ONE_ATTEMPT, "monitor.model_idle_timeout": 1.0, "monitor.engine": True}) as running,
        httpx.AsyncClient(base_url=running.platform.engine_url, timeout=100) as http,
    ):
        http.headers["authorization"] = f"Bearer {running.platform.token}"
        received = b""
        for program, code in FAULTS.items():
            request = {
                "messages": [{"role": "user", "content": program}],
                "metadata": {"correlation_id": "r"},
            }
            headers = {"x-actor-id": "owner", "x-actor-permissions": "*"}
            response = await http.post("/engine/chat", json=request, headers=headers)
            received += response.content
            last = list(contract.events_in(response.content, contract.LOOP_EVENTS))[-1]
            assert (last.name, last.data.code) == ("error", code), program
        assert_clean(received, running)
        assert not WORDS.findall(received)


async def test_ARCH_5_ARCH_6_faults_of_the_openai_endpoint(open_platform: OpenPlatform) -> None:
    """The same through the official client, which sees one code a cause, in a stream too, and sends nothing twice."""
    async with (
        open_platform({**ONE_ATTEMPT, "monitor.model_idle_timeout": 1.0}) as running,
        openai.AsyncOpenAI(base_url=f"{running.platform.url}/v1", api_key=running.platform.token) as client,
    ):
        received = ""
        for program, code in FAULTS.items():
            before = len(running.provider.answer_requests)
            request: dict[str, Any] = {"model": "main", "messages": [{"role": "user", "content": program}]}
            with pytest.raises(openai.APIStatusError) as failed:
                await client.chat.completions.create(**request)
            expected = {"context_overflow": ("context_length_exceeded", 400)}.get(code, (code, 502))
            assert (failed.value.code, failed.value.status_code) == expected, program
            received += failed.value.response.text + str(failed.value.response.headers)
            with pytest.raises(openai.APIError) as failed_stream:
                async for _ in await client.chat.completions.create(stream=True, **request):
                    pass
            assert failed_stream.value.code == expected[0], program
            received += str(failed_stream.value.body)
            assert len(running.provider.answer_requests) == before + 2
        assert_clean(received.encode(), running)


class Breaking:
    """A plugin whose tools fail in every way, with every detail in the errors."""

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="read")
        def raises() -> str:
            """Raise."""
            raise RuntimeError(DETAIL)

        @trunkline.tool(effect="read")
        def leaves() -> str:
            """Leave."""
            raise SystemExit(DETAIL)

        @trunkline.tool(effect="read")
        async def unreadable() -> object:
            """Return what cannot be written down."""
            return object()

        @trunkline.tool(effect="read", timeout=0.3)
        async def hangs() -> str:
            """Hang."""
            import anyio

            await anyio.sleep_forever()
            return ""

        return [raises, leaves, unreadable, hangs]


async def test_ARCH_5_ARCH_6_failing_tools_are_results(open_platform: OpenPlatform) -> None:
    """A tool that raises, leaves, hangs or is called wrongly is a result for the model, and never a path of ours."""
    async with open_platform(plugins=[Breaking()]) as running:
        calls = (
            "raises {}", "leaves {}", "unreadable {}", "hangs {}", "nobody {}", 'read_file {"path": "../../token"}',
            'read_file {"path": 7}', 'read_file {"path": "missing.md"}', 'memory_read {"path": "no/such"}',
        )  # fmt: skip
        for call in calls:
            reply = await running.client.say(f"call:{call} ;; say:so it is")
            assert reply.text == "so it is" and reply.code is None, call
            assert reply.results()[0].startswith("error: "), call
        bad = await running.client.say("badcall:read_file {no json ;; say:so it is")
        assert bad.text == "so it is" and bad.code is None
        assert_clean(running.client.received, running)


async def test_ARCH_6_refusals_reveal_no_detail(open_platform: OpenPlatform, tmp_path: Path) -> None:
    """For bad requests of every kind, the answer is a code and a sentence, never the exception's text."""
    async with open_platform() as running:
        client = running.client
        for method, path in (
            ("GET", "/conversations/..%2f..%2ftoken"), ("GET", "/conversations/%00"), ("GET", "/%ff%fe"),
            ("GET", "/conversations?from=yesterday"), ("GET", "/conversations?limit=1e9"),
            ("GET", "/api/turns/turn_x/events?from=zzz"), ("PATCH", "/conversations"), ("GET", "/nowhere"),
            ("POST", "/api/turns/turn_x/cancel"), ("GET", "/api/blocks/..%2f"),
        ):  # fmt: skip
            response = await client.http.request(method, path)
            assert response.status_code >= 400, path
            client.received += response.content + str(response.headers).encode()
        nested = b'{"content": "x", "metadata": ' + b"[" * 5000 + b"]" * 5000 + b"}"
        reply = await client.post("/conversations/messages", nested)
        assert reply.refused and reply.refused.code == "invalid_request"
        assert_clean(client.received, running)
