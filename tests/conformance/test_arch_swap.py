"""ARCH-2 and ARCH-3: another agent loop and other clients, with everything else as it is."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import openai
import pytest

from trunkline.testing.platform import platform
from trunkline.testing.scripted_provider import ScriptedProvider

from . import contract
from .client import Client, Reply
from .conftest import ConformancePlatform, OpenPlatform, client_of, talks_to
from .processes import run_program

pytestmark = pytest.mark.anyio

COUNT_WORDS = '''
import trunkline

@trunkline.tool(effect="read")
def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())

@trunkline.hookimpl
def trunkline_tools():
    return [count_words]
'''

TALK = ('say:Let me count. ;; call:count_words {"text": "one two three"} ;; quote', "roles")


async def talk(client: Client) -> list[Any]:
    """Return the conversation: the items shown to its reader, and its stored messages; without ids and times."""
    first = await client.say(TALK[0])
    second = await client.say(TALK[1], first.conversation)
    assert second.conversation == first.conversation
    stored = (await client.conversation(first.conversation)).messages
    assert stored[-1].id == second.message_id
    return [seen(first), second.names, [(message.role, message.content) for message in stored]]


def seen(reply: Reply) -> list[Any]:
    calls = [(event.data.name, event.data.arguments) for event in reply.events if event.name == "tool-call"]
    return [reply.names, reply.text, calls, reply.results(), reply.events[-1].data.finish_reason]


@contextmanager
def independent_loop(model: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    program = Path(__file__).with_name("independent_loop.py")
    with subprocess.Popen(
        [sys.executable, str(program), model], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


TOKEN = "LOOP_CREDENTIAL"
"""The variable that holds the other Trunkline's token. The platform of tests takes away those called ``…_TOKEN``."""


def engine(url: str, **more: Any) -> dict[str, Any]:
    return {"runtime.provider_adapter": "engine", "adapters.engine.url": url, **more}


async def test_ARCH_2_FS_7_configuration_alone_replaces_the_agent_loop(
    open_platform: OpenPlatform,
    provider: ScriptedProvider,
    sources: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One conversation, on one home, with three loops: Trunkline's own, a program with nothing of Trunkline in it, and
    another Trunkline's ``/engine/chat``. Clients see the same, the same is stored, and each request that a foreign loop
    is sent is the contract's."""
    (sources / "words.py").write_text(COUNT_WORDS)
    tools = {"runtime.tool_sources": [str(sources)]}
    async with open_platform(tools) as running:
        own = await talk(running.client)
    with independent_loop(provider.url) as (url, process):
        async with open_platform(engine(url)) as running:
            foreign = await talk(running.client)
        process.kill()
        assert process.stdout is not None
        requests = [msgspec.json.decode(line, type=contract.EngineRequest) for line in process.stdout]
    config = {**talks_to(provider), **tools, "monitor.engine": True}
    async with platform(tmp_path / "loop", config=config) as loop:
        monkeypatch.setenv(TOKEN, loop.token)
        async with open_platform(
            engine(loop.engine_url, **{"adapters.engine.token": {"env": TOKEN}})
        ) as running:
            other = await talk(running.client)
            assert (await running.client.page()).total == 3
    assert own[0] == [
        ["text-delta", "tool-call", "tool-result", "text-delta", "done"],
        "Let me count.count_words said: 3",
        [("count_words", {"text": "one two three"})],
        ["3"],
        "stop",
    ]
    assert foreign == own
    assert other == own
    assert len(requests) == 2 and {one.metadata.trigger for one in requests} == {"message"}


async def test_ARCH_3_FS_5_a_second_client_lists_and_resumes(
    open_platform: OpenPlatform, environ: dict[str, str]
) -> None:
    """OpenAI's own client and the command line find and continue a conversation that an HTTP client started. PA-T10:
    the model receives every earlier turn, with the text beside tool calls, from any client."""
    async with open_platform() as running:
        first = await running.client.say('say:Looking. ;; call:list_directory {"path": "."} ;; say:Empty.')
        async with client_of(running.platform.url, running.platform.token) as second:
            listed = (await second.page()).conversations
            assert [line.id for line in listed] == [first.conversation]
            await second.say("say:two", listed[0].id)
        await by_openai(running, first.conversation)
        done = await run_say(running, environ, first.conversation)
        assert done["answer"] == "four" and done["conversation"] == first.conversation
        messages = running.provider.answer_requests[-1].body["messages"]
        assert [message["role"] for message in messages] == [
            "system", "user", "assistant", "tool", "assistant",
            "user", "assistant", "user", "assistant", "user",
        ]  # fmt: skip
        assert messages[2]["content"] == "Looking." and messages[2]["tool_calls"]
        assert messages[3]["content"] == first.results()[0]
        assert [m.content for m in (await running.client.conversation(first.conversation)).messages][-6:] == [
            "say:two", "two", "say:three", "three", "say:four", "four",
        ]  # fmt: skip


async def by_openai(running: ConformancePlatform, conversation: str) -> None:
    async with openai.AsyncOpenAI(
        base_url=f"{running.platform.url}/v1", api_key=running.platform.token
    ) as client:
        answer = await client.chat.completions.create(
            model="main",
            messages=[{"role": "user", "content": "say:three"}],
            extra_headers={"X-Conversation-ID": conversation},
        )
    assert answer.choices[0].message.content == "three"


async def run_say(running: ConformancePlatform, environ: dict[str, str], conversation: str) -> dict[str, Any]:
    import anyio.to_thread

    done = await anyio.to_thread.run_sync(
        run_program, environ, "say", "say:four", "--conversation", conversation, "--json"
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
