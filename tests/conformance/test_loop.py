"""PA-F13 to F17 and PA-T8, T13 to T15: the loop's handling of tools, as clients see it."""

import json
import random
import re
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import httpx
import pytest

import trunkline
from trunkline.testing.platform import platform
from trunkline.testing.script import CallTools, Reply, Say, ScriptedCall, ScriptedRequest, answer
from trunkline.testing.scripted_provider import ScriptedProvider

from .conftest import ConformancePlatform, OpenPlatform, client_of, talks_to

pytestmark = pytest.mark.anyio

BLOB = (
    "".join(map(chr, range(32)))
    + "\x7f\x80\u2028\u2029\ufeff\\\"'</script>\ud7ff\U0001f600\r\n"
    + "ä" * 1_000_000
)


class Tools:
    """Tools that take their time, or say much."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, for the next test."""
        self.running = 0
        self.together = 0
        self.three = anyio.Event()
        self.count = 0

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="read")
        async def nap(name: str) -> str:
            """Sleep until three do."""
            self.running += 1
            self.together = max(self.together, self.running)
            if self.running == 3:
                self.three.set()
            with anyio.move_on_after(30):
                await self.three.wait()
            self.running -= 1
            return f"{name} woke"

        @trunkline.tool(effect="read", timeout=0.5)
        async def hang() -> str:
            """Hang."""
            await anyio.sleep_forever()
            return ""

        @trunkline.tool(effect="write")
        def count() -> int:
            """Count."""
            self.count += 1
            return self.count

        @trunkline.tool(effect="read")
        def blob() -> str:
            """Say much."""
            return BLOB

        return [nap, hang, count, blob]


@pytest.fixture(scope="module")
async def shared(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[ConformancePlatform, Tools]]:
    """One platform with the tools above, for the tests without settings of their own that count no conversations."""
    tools = Tools()
    with ScriptedProvider() as provider:
        async with (
            platform(tmp_path_factory.mktemp("loop"), plugins=[tools], config=talks_to(provider)) as running,
            client_of(running.url, running.token) as client,
        ):
            yield ConformancePlatform(running, provider, client), tools


@pytest.fixture
def tools(shared: tuple[ConformancePlatform, Tools]) -> Tools:
    """The tools of the shared platform, which have done nothing."""
    shared[1].forget()
    return shared[1]


@pytest.fixture
def running(shared: tuple[ConformancePlatform, Tools], tools: Tools) -> ConformancePlatform:
    """The shared platform, whose provider has seen nothing."""
    shared[0].provider.forget()
    return shared[0]


async def test_PA_T13_seventy_five_iterations(running: ConformancePlatform) -> None:
    """PA-F14: nothing caps the number of model calls of a request."""
    reply = await running.client.say(" ;; ".join(["call:count {}"] * 75 + ["say:enough"]))
    assert reply.text == "enough" and reply.code is None
    assert reply.results() == [str(number) for number in range(1, 76)]
    assert len(running.provider.answer_requests) == 76


class Cap:
    """A deployment's bound."""

    @trunkline.hookimpl
    def trunkline_stop_turn(self, turn: trunkline.TurnInfo) -> str | None:
        return "five steps are enough" if turn.step >= 5 else None


async def test_PA_T13_a_configured_cap_stops_the_loop(open_platform: OpenPlatform) -> None:
    """With a bound of five the turn ends after five model calls, with the documented reason, and is stored."""
    tools = Tools()
    async with open_platform(plugins=[tools, Cap()]) as running:
        reply = await running.client.say(" ;; ".join(["call:count {}"] * 75))
        assert reply.events[-1].data.finish_reason == "stopped"
        assert len(running.provider.answer_requests) == 5 and tools.count == 5
        assert (await running.client.say("say:on", reply.conversation)).text == "on"


async def test_PA_T3_a_missing_file_is_reported_and_the_loop_continues(running: ConformancePlatform) -> None:
    """Reads, edits and deletions that fail, of files and of memory: each is an error result with a reason, the model
    continues after each, and nothing has changed."""
    missing = ("read_file", "delete_file", "memory_read", "memory_delete")
    edits = {
        "replace_in_file": {"path": "kept.md", "find": "absent", "replace": "x"},
        "memory_edit": {"path": "kept.md", "old_content": "absent", "new_content": "x"},
    }
    calls = [f'call:{name} {{"path": "nowhere.md"}}' for name in missing]
    calls += [f"call:{name} {json.dumps(arguments)}" for name, arguments in edits.items()]
    kept = '{"path": "kept.md", "content": "kept"}'
    await running.client.say(f"call:write_file {kept} ;; call:memory_write {kept}")
    reply = await running.client.say(" ;; ".join([*calls, "say:still here"]))
    assert reply.text == "still here" and reply.code is None
    reported = running.provider.answer_requests[-1].body["messages"]
    errors = [message["content"] for message in reported if message["role"] == "tool"][-len(calls) :]
    for name, said in zip([*missing, *edits], errors, strict=True):
        why = ("nowhere.md",) if name in missing else ("does not contain that text", "is not in")
        assert any(words in said for words in why), (name, said)
    ended = [event.data for event in reply.events if event.name == "tool-result"]
    assert len(ended) == len(calls) and all(not hasattr(one, "output") for one in ended)
    assert (running.platform.home.workspace("main") / "kept.md").read_text() == "kept"
    assert (running.home / "memory/blocks/main/kept.md").read_text() == "kept"


async def test_PA_T14_tools_of_one_answer_run_together(running: ConformancePlatform, tools: Tools) -> None:
    """PA-F17: three tools that wait for each other run at the same time, and a fourth that hangs times out alone; the
    results return in the order of the calls."""
    program = 'parallel:nap {"name": "a"} hang {} nap {"name": "b"} nap {"name": "c"} ;; say:all up'
    reply = await running.client.say(program)
    assert tools.together == 3
    reported = {event.data.id: event for event in reply.events if event.name == "tool-result"}
    calls = [event.data for event in reply.events if event.name == "tool-call"]
    results = [getattr(reported[call.id].data, "output", "failed") for call in calls]
    assert results == ["a woke", "failed", "b woke", "c woke"]
    assert reply.text == "all up"
    messages = running.provider.answer_requests[-1].body["messages"][-4:]
    assert [message["content"][:6] for message in messages if message["role"] == "tool"][0::2] == [
        "a woke",
        "b woke",
    ]
    assert "0.5" in messages[1]["content"], "the model is told of the time limit"


async def test_PA_T15_results_reach_the_model_unchanged(open_platform: OpenPlatform) -> None:
    """Control characters and megabytes: the model, the client and the stored conversation get the same, as far as the
    owner lets results be shown whole."""
    async with open_platform(config={"tools.max_shown_result": 4_000_000}, plugins=[Tools()]) as running:
        reply = await running.client.say("call:blob {} ;; say:much")
        assert reply.results() == [BLOB]
        assert running.provider.answer_requests[-1].body["messages"][-1]["content"] == BLOB
        stored = await running.client.whole(reply.conversation)
        assert [message.content for message in stored.messages if message.role == "tool"] == [BLOB]
        await running.client.say("say:next", reply.conversation)
        assert running.provider.answer_requests[-1].body["messages"][3]["content"] == BLOB


def reads_on(received: ScriptedRequest) -> Reply:
    """A model that reads all of a long text, following the notes."""
    if not received.asked:
        return answer(CallTools((ScriptedCall("blob", {}),)))
    text = received.results[-1][1]
    id = re.search(r'id="(\w+)"', received.results[0][1])
    onward = re.search(r"Read on with offset=(\d+)\.]$", text)
    if id is None or (onward is None and received.asked > 1):
        return answer(Say("That is all."))
    request = {"id": id[1], "offset": int(onward[1]) if onward else 0}
    return answer(CallTools((ScriptedCall("read_result", request),)))


async def test_PA_T15_a_long_file_can_be_read_to_the_last_byte(home: Path) -> None:
    """A result of megabytes comes with its beginning and its end, and the model is then offered ``read_result``, whose
    parts together are the very same text."""
    with ScriptedProvider(reads_on) as provider:
        async with (
            platform(home, plugins=[Tools()], config=talks_to(provider)) as running,
            client_of(running.url, running.token) as client,
        ):
            reply = await client.say("Say much.")
            assert reply.text == "That is all."
        first, *parts = reply.results()
        assert len(first) < 20_000 and first.startswith(BLOB[:12_000])
        assert "".join(part.partition("\n\n[Cut here: this is")[0] for part in parts) == BLOB
        offered = [
            [tool["function"]["name"] for tool in one.body["tools"]] for one in provider.answer_requests[:2]
        ]
        assert "read_result" not in offered[0] and offered[1] == [*offered[0], "read_result"]


async def test_many_loops_run_at_once(running: ConformancePlatform) -> None:
    """PA-F13: conversations are independent; a slow one holds up no other, and each gets its own answer."""
    replies: dict[int, str] = {}
    async with anyio.create_task_group() as tasks:

        async def one(number: int) -> None:
            async with client_of(running.platform.url, running.platform.token) as client:
                reply = await client.say(f"slow:5:20 ;; call:count {{}} ;; say:I am {number}")
                replies[number] = reply.text

        for number in range(20):
            tasks.start_soon(one, number)
    assert all(replies[number].endswith(f"I am {number}") for number in range(20))


async def test_tools_and_provider_are_boot_configuration(running: ConformancePlatform) -> None:
    """PA-F15: nothing in a request of the Gateway API chooses a model, a tool or an instruction."""
    request = {"model": "openai/other", "tools": [], "provider_adapter": "offline", "system": "be rude"}
    await running.client.say("say:hi")
    usual = running.provider.answer_requests[-1].body
    await running.client.say("say:hi", **request)
    asked = running.provider.answer_requests[-1].body
    assert (
        asked["model"] == "scripted" and asked["tools"] == usual["tools"] and "read_file" in running.offered()
    )
    assert "be rude" not in json.dumps(asked)


def twice(received: ScriptedRequest) -> Reply:
    """A model that calls twice in one answer, with text."""
    if received.asked:
        return answer(Say(f"{len(received.results)} results"))
    return answer(Say("Both."), CallTools((ScriptedCall("count", {}), ScriptedCall("count", {}))))


async def test_the_loop_adds_nothing_to_the_messages() -> None:
    """PA-F16: the request holds one line of bootstrap, the message, and the model's own words; no prompt is built. What
    stands there besides comes from context sources, of which there are none here."""
    with ScriptedProvider(twice) as provider:
        config = {**talks_to(provider), "plugins.disabled": ["trunkline-personality"]}
        async with (
            platform(plugins=[Tools()], config=config) as running,
            client_of(running.url, running.token) as client,
        ):
            assert (await client.say("How many?")).text == "Both.2 results"
        messages = provider.answer_requests[-1].body["messages"]
        assert messages[0] == {"role": "system", "content": "Read AGENT.md for your instructions."}
        assert [message["role"] for message in messages[1:]] == ["user", "assistant", "tool", "tool"]
        assert messages[1]["content"] == "How many?" and messages[2]["content"] == "Both."


async def test_PA_T8_a_thousand_random_tokens(open_platform: OpenPlatform) -> None:
    """Over HTTP, as bearer and as API key: 401 each, and no model is ever asked."""
    dice = random.Random(20)
    letters = "".join(map(chr, range(33, 127)))
    async with open_platform() as running:
        limits = httpx.Limits(max_connections=8)
        refused = 0
        async with httpx.AsyncClient(base_url=running.platform.url, limits=limits, timeout=30) as http:
            for number in range(1000):
                guess = "".join(dice.choices(letters, k=dice.randint(1, 60)))
                headers = {"x-api-key": guess} if number % 2 else {"authorization": f"Bearer {guess}"}
                response = await http.post(
                    "/conversations/messages", json={"content": "say:hi"}, headers=headers
                )
                refused += response.status_code == 401
        assert refused == 1000
        assert running.provider.requests == [] and (await running.client.page()).total == 0
