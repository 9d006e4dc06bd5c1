"""A fork: a new conversation that repeats a turn from a step, with the turn's content up to there."""

import json
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

import trunkline
from tests.block_client import BlockClient, client_of_new_block
from tests.support.commands import run_trunkline
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.gateway.messages import ForkTurn, SendMessage
from trunkline.contracts.models.adapter import ModelAdapter
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.tools.tool import Proceed, ToolInvocation
from trunkline.contracts.turns.feed_messages import ApprovalRequested
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.contracts.workers.subjects import SPANS
from trunkline.testing.platform import UNASKED, Platform, PlatformClient, TurnAnswer, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline.workers.monitor.journal import RAW_JOURNAL
from trunkline.workers.monitor.replay import replay
from trunkline_bus import RemoteFault

pytestmark = pytest.mark.anyio


class ForkPlugin:
    """A scripted model, a tool whose effect is counted, and a gate that asks a person on request."""

    stage = "gate"

    def __init__(self) -> None:
        self.model = ScriptedModel()
        self.forget()

    def forget(self) -> None:
        """Begin anew, for the next test."""
        self.notes: list[str] = []
        self.asking = False

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[trunkline.Tool]:
        @trunkline.tool(effect="write")
        async def note(text: str) -> str:
            """Note a text."""
            self.notes.append(text)
            return f"noted {text}"

        return [note]

    @trunkline.hookimpl
    def trunkline_tool_middleware(self) -> Sequence[Any]:
        return [self]

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        if not self.asking or invocation.approved == invocation.call_hash:
            return await proceed(invocation)
        return ToolOutcome(
            call=invocation.context.call,
            status="approval",
            call_hash=invocation.call_hash,
            question="Really?",
        )

    def running(self) -> Any:
        return platform(plugins=[self], config={"runtime.provider_adapter": self.model.name})

    def received(self) -> list[tuple[str, str]]:
        """The conversation that the model was sent last, without its instructions."""
        return [(m.role, m.content) for m in self.model.requests[-1].messages if m.role != "system"]


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[tuple[ForkPlugin, Platform]]:
    """One platform for all tests of the module."""
    plugin = ForkPlugin()
    async with plugin.running() as running:
        yield plugin, running


@pytest.fixture
def plugin(shared: tuple[ForkPlugin, Platform]) -> ForkPlugin:
    """The plugin of the shared platform, which has noted nothing and asks nobody."""
    shared[0].forget()
    return shared[0]


@pytest.fixture
async def client(shared: tuple[ForkPlugin, Platform], plugin: ForkPlugin) -> BlockClient:
    """A client of the shared platform, with a block of its own."""
    return await client_of_new_block(shared[1])


async def stored(running: PlatformClient, conversation: str) -> tuple[Message, ...]:
    return (await running.gateway.conversation(conversation, include_tools=True)).messages


async def forked(running: PlatformClient, answer: TurnAnswer, step: int, **request: Any) -> TurnAnswer:
    turn = answer.accepted.turn
    return await running.answer(await running.gateway.fork(ForkTurn(turn=turn, step=step, **request)))


PROGRAM = 'call:note {"text": "one"} ;; say:first ;; call:note {"text": "two"} ;; say:second'


async def test_a_fork_repeats_the_turn_from_a_step_and_no_earlier_tool(
    plugin: ForkPlugin, client: BlockClient
) -> None:
    """The messages before the turn and its earlier steps are the fork's history. The tools of those steps are not
    run, and the later steps are; the original is unchanged; the fork's conversation names its origin."""
    first = await client.say("say:earlier")
    conversation = first.accepted.conversation
    answer = await client.say(PROGRAM, conversation=conversation)
    await client.say("say:later", conversation=conversation)
    before = await stored(client, conversation)
    assert plugin.notes == ["one", "two"]
    reported = await forked(client, answer, 1)
    assert plugin.notes == ["one", "two", "two"], "only what came from step 1 on is done again"
    assert reported.text == "firstsecond" or reported.text.endswith("second")
    assert reported.accepted.conversation != conversation
    assert await stored(client, conversation) == before
    mine = await stored(client, reported.accepted.conversation)
    assert [m.content for m in mine if m.role == "user"] == ["say:earlier", PROGRAM]
    assert [m.content for m in mine if m.role == "tool"] == ["noted one", "noted two"]
    (file,) = client.platform.home.memory.glob(
        f"blocks/{client.block}/conversations/*/{reported.accepted.conversation}.jsonl"
    )
    header = json.loads(file.read_text().splitlines()[0])
    assert header["forked_from"] == {
        "conversation": conversation,
        "turn": answer.accepted.turn,
        "step": 1,
    }
    assert (await client.gateway.conversation(reported.accepted.conversation)).summary.forked_from is not None


async def test_a_fork_at_step_0_repeats_the_question_without_later_messages(
    plugin: ForkPlugin, client: BlockClient
) -> None:
    """The conversation until the turn, then its message; another model if one is named."""
    first = await client.say("say:earlier")
    answer = await client.say("say:hello", conversation=first.accepted.conversation)
    await client.say("say:later", conversation=first.accepted.conversation)
    await forked(client, answer, 0, model=f"{plugin.model.name}/other")
    assert plugin.received() == [("user", "say:earlier"), ("assistant", "earlier"), ("user", "say:hello")]
    assert plugin.model.requests[-1].model == "other"
    going_on = await client.say(
        "say:more", conversation=(await forked(client, answer, 0)).accepted.conversation
    )
    assert going_on.text == "more" and ("user", "say:later") not in plugin.received()


async def test_branches_are_shown_and_exported(plugin: ForkPlugin, client: BlockClient) -> None:
    """A message that was changed, and one that was asked again, are branches of the same place, whichever of the
    conversations is asked; a fork behind an answer is one of the next message. An export has all of them once, with the
    calls of tools, in a fence that no result can close."""
    first = await client.say("say:earlier")
    conversation = first.accepted.conversation
    answer = await client.say('call:note {"text": "```` one"} ;; say:done', conversation=conversation)
    await client.say("say:later", conversation=conversation)
    changed = await forked(client, answer, 0, content="say:otherwise")
    again = await forked(client, changed, 0)
    behind = await forked(client, answer, 2, content="say:and on")
    ids = [conversation, *(one.accepted.conversation for one in (changed, again))]
    turns = [one.accepted.turn for one in (answer, changed, again)]
    headers = {"authorization": f"Bearer {client.token}"}
    async with httpx.AsyncClient(base_url=client.url, headers=headers, timeout=60) as http:
        for id, turn in zip(ids, turns, strict=True):
            points = (await http.get(f"/api/conversations/{id}/branches")).json()["points"]
            assert points[0]["turn_id"] == turn
            shown = points[0]["branches"]
            assert [one["turn_id"] for one in shown] == turns
            assert [one["conversation_id"] for one in shown] == ids
        last = (await http.get(f"/api/conversations/{conversation}/branches")).json()["points"][-1]
        assert [one["conversation_id"] for one in last["branches"]] == [
            conversation, behind.accepted.conversation,
        ]  # fmt: skip
        listed = (await http.get("/conversations", params={"block": client.block})).json()["conversations"]
        origins = {one["id"]: one.get("forked_from", {}).get("turn_id") for one in listed}
        assert [origins[id] for id in ids] == [None, *turns[:2]]
        export = f"/api/conversations/{conversation}/export"
        document = (await http.get(export, params={"format": "json"})).json()
        text = (await http.get(export)).text
    assert (document["format"], document["version"]) == ("trunkline-conversation", 1)
    assert [m["content"] for m in document["messages"]][:2] == ["say:earlier", "earlier"]
    assert document["messages"][3]["tool_calls"][0]["arguments"] == {"text": "```` one"}
    assert [one["shared"] for one in document["branches"]].count(2) == 2
    for expected, times in (
        ("### Call of note", 1),
        ("`````\nnoted ```` one\n`````", 1),
        ("say:otherwise", 2),
        ("say:and on", 1),
    ):
        assert text.count(expected) == times, expected
    assert text.count("# Branch: ") == 3


async def test_a_fork_shows_its_beginning_while_it_runs(plugin: ForkPlugin, client: BlockClient) -> None:
    """A person who changes a message goes on seeing what came before it; nothing of the fork is stored yet."""
    first = await client.say("say:earlier")
    answer = await client.say("say:hello", conversation=first.accepted.conversation)
    plugin.asking = True
    command = ForkTurn(turn=answer.accepted.turn, step=0, content='call:note {"text": "x"} ;; say:done')
    fork = await client.gateway.fork(command)
    with anyio.fail_after(60):
        async for event in client.gateway.watch(fork.conversation, fork.turn):
            if isinstance(event, ApprovalRequested):
                break
    shown = await client.gateway.conversation(fork.conversation)
    assert [message.content for message in shown.messages] == ["say:earlier", "earlier", command.content]
    assert shown.summary.forked_from is not None and shown.running == fork.turn


async def test_other_words_at_step_0_replace_the_question(plugin: ForkPlugin, client: BlockClient) -> None:
    """Neither the model nor a reader sees the question that a person changed."""
    first = await client.say("say:earlier")
    answer = await client.say("say:hello", conversation=first.accepted.conversation)
    changed = await forked(client, answer, 0, content="say:changed")
    assert plugin.received() == [("user", "say:earlier"), ("assistant", "earlier"), ("user", "say:changed")]
    said = [m.content for m in await stored(client, changed.accepted.conversation)]
    assert said == ["say:earlier", "earlier", "say:changed", "changed"]


async def test_a_fork_with_other_words_at_a_step_or_at_the_end(
    plugin: ForkPlugin, client: BlockClient
) -> None:
    """The words follow the copied history; at the end of a turn a fork needs them."""
    answer = await client.say(PROGRAM)
    await forked(client, answer, 1, content="say:otherwise")
    assert plugin.received()[-2:] == [("tool", "noted one"), ("user", "say:otherwise")]
    with pytest.raises(RemoteFault, match="Give a message to continue") as refused:
        await forked(client, answer, 3)
    assert refused.value.code == "conflict"
    assert (await forked(client, answer, 3, content="say:and on")).text == "and on"
    assert ("assistant", "second") in [(role, text.strip()) for role, text in plugin.received()]


async def test_a_turn_that_waits_for_a_person_can_be_forked_and_still_waits(
    plugin: ForkPlugin, client: BlockClient
) -> None:
    """Its answer is not stored yet; the journal has it."""
    plugin.asking = True
    first = await client.say("say:earlier")
    accepted = await client.send(
        'call:note {"text": "x"} ;; say:done', conversation=first.accepted.conversation
    )
    asked = None
    with anyio.fail_after(60):
        async for event in client.gateway.watch(accepted.conversation, accepted.turn):
            if isinstance(event, ApprovalRequested):
                asked = event
                break
    assert asked is not None
    fork = await client.gateway.fork(ForkTurn(turn=accepted.turn, step=0, content="say:instead"))
    assert (await client.answer(fork)).text == "instead"
    assert plugin.received()[:2] == [("user", "say:earlier"), ("assistant", "earlier")]
    assert (await client.gateway.turn(accepted.turn)).status == "parked" and plugin.notes == []
    await client.gateway.decide(accepted.turn, asked.call.id, asked.call_hash, allow=True)
    assert (await client.answer(accepted)).text.endswith("done") and plugin.notes == ["x"]


async def test_an_impossible_fork_is_refused_with_the_reason(client: BlockClient) -> None:
    """An unknown turn, one whose journal is gone, a step that it does not have, a block that takes nothing."""
    answer = await client.say("say:hello")
    for turn, step, code, why in (
        ("turn_nobody", 0, "not_found", "There is no such turn"),
        ("../evil *", 0, "not_found", "There is no such turn"),
        (answer.accepted.turn, 7, "invalid_request", "no step 7: its steps are 0 to 0"),
        (answer.accepted.turn, -1, "invalid_request", "no step -1"),
    ):
        with pytest.raises(RemoteFault, match=why) as refused:
            await client.gateway.fork(ForkTurn(turn=turn, step=step))
        assert refused.value.code == code
    await client.gateway.create_block("garden")
    other = await client.say("say:there", block="garden")
    await client.gateway.archive_block("garden")
    with pytest.raises(RemoteFault, match="garden") as refused:
        await forked(client, other, 0)
    assert refused.value.code == "not_found"
    await client.bus.purge(JOURNAL, turn=answer.accepted.turn)
    with pytest.raises(RemoteFault, match="There is no such turn"):
        await forked(client, answer, 0)


async def test_a_repeat_is_the_same_fork_and_a_fork_can_be_driven_again(
    plugin: ForkPlugin, client: BlockClient
) -> None:
    """The same client id counts once, and is not taken for a message of that id; the fork's own journal replays byte
    for byte; its trace is linked to the turn's."""
    said = await client.gateway.send(SendMessage(content=PROGRAM, client_id="one", block=client.block))
    answer = await client.answer(said)
    request = ForkTurn(turn=said.turn, step=1, client_id="one")
    once, twice = await client.gateway.fork(request), await client.gateway.fork(request)
    assert once.turn == twice.turn and once.conversation == twice.conversation != said.conversation
    await client.answer(once)
    assert (await client.gateway.fork(request)).duplicate and plugin.notes == ["one", "two", "two"]
    raw = [
        s.data async for s in client.bus.history(RAW_JOURNAL, turn=once.turn, conversation=once.conversation)
    ]
    assert replay(once.turn, raw).same
    origin = (await client.gateway.turn(answer.accepted.turn)).traceparent
    trace = (await client.gateway.turn(once.turn)).traceparent
    assert origin and trace
    links: list[str] = []
    with anyio.fail_after(60):
        while origin.split("-")[1] not in links:
            spans = [
                s
                async for batch in client.bus.history(SPANS, trace=trace.split("-")[1])
                for s in batch.data.spans
            ]
            links = [link for span in spans for link in span.links]


async def test_over_http(client: BlockClient) -> None:
    """``POST /api/turns/{id}/fork`` takes a step and answers as steering does; behind the door; nonsense is a 4xx."""
    answer = await client.say("say:hello")
    path = f"/api/turns/{answer.accepted.turn}/fork"
    async with httpx.AsyncClient(base_url=client.platform.url, timeout=60) as stranger:
        assert (await stranger.post(path, json={"step": 0})).status_code == 401
    headers = {"authorization": f"Bearer {client.platform.token}"}
    async with httpx.AsyncClient(base_url=client.platform.url, headers=headers, timeout=60) as http:
        taken = await http.post(path, json={"step": 0, "content": "say:again"})
        assert taken.status_code == 202
        found = taken.json()
        assert found["conversation_id"] != answer.accepted.conversation
        events = await http.get(f"/api/turns/{found['turn']}/events")
        assert "again" in events.text and "event: done" in events.text
        for body in ({}, {"step": -1}, {"step": "one"}, {"step": 9}):
            assert 400 <= (await http.post(path, json=body)).status_code < 500
        assert (await http.post("/api/turns/turn_nobody/fork", json={"step": 0})).status_code == 404


def test_the_command(tmp_path: Path) -> None:
    """Prints the answer; ``last`` is the last turn; wrong usage and unknown turns say so. The step is the number that
    replay prints."""

    run = partial(run_trunkline, tmp_path, **UNASKED)

    assert run("fork", "last").returncode == 2
    assert "There is no turn yet" in run("fork", "last@0").stderr
    said = json.loads(run("say", "/tool write_file path=a.md content=x", "--json").stdout)
    steps = [one["step"] for one in json.loads(run("replay", "last", "--json").stdout)["records"]]
    assert steps == [0, 0, 1, 1, 1]
    done = run("fork", f"{said['turn']}@1", "--json")
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    assert reported["conversation"] != said["conversation"] and reported["tools"] == [] and reported["answer"]
    missing = run("fork", "last@9")
    assert missing.returncode == 1 and "has no step 9" in missing.stderr
