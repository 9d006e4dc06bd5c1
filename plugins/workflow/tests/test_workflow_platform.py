"""Workflows on a running platform: runs, approvals, states, edited files, and what agents may not do."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import pytest

import trunkline
from tests.block_client import BlockClient, stopped_at_the_end
from tests.support.commands import run_trunkline
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.turns.feed_messages import ToolEnded
from trunkline.home.kill_switch import KillSwitch
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_workflow.definition import parse_definition
from trunkline_workflow.runs import Runs, RunView

from .workflow_tools import DEPLOY_APP, SETTINGS, EffectPlugin, effects, workflow

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    with ScriptedProvider() as provider:
        config = {**provider.settings, **SETTINGS}
        async with platform(
            tmp_path_factory.mktemp("workflow"), config=config, plugins=[EffectPlugin()]
        ) as running:
            yield running


@pytest.fixture
async def running(shared: Platform) -> AsyncIterator[BlockClient]:
    async with stopped_at_the_end(shared) as client:
        yield client


async def install(running: BlockClient, text: str) -> Runs:
    runs = Runs(running.bus, running.block)
    definition = parse_definition(text)
    await runs.files.install(definition.name, text, proposed=False)
    return runs


async def begin(runs: Runs, text: str, **inputs: Any) -> RunView:
    return await settled(runs, await runs.view(await runs.begin(parse_definition(text), inputs)))


async def settled(runs: Runs, view: RunView) -> RunView:
    """The run when it has ended or waits."""
    with anyio.fail_after(60):
        while not view.ended and not view.approvals:
            await anyio.sleep(0.05)
            view = await runs.view(view.record)
    return view


async def decide(runs: Runs, view: RunView, allow: bool) -> RunView:
    """Decide about the call that waits, and return the run when it has ended or waits for another decision."""
    (asked,) = view.approvals
    await runs.gateway.decide(asked.turn, asked.call, asked.call_hash, allow=allow)
    with anyio.fail_after(60):
        while not view.ended and asked.id in {one.id for one in view.approvals}:
            await anyio.sleep(0.05)
            view = await runs.view(view.record)
    return await settled(runs, view)


async def test_CC_T9_deploy_app_waits_and_goes_on_by_the_decision(running: BlockClient) -> None:
    """CC-T9, CC-F11, CC-F12, CC-F13: deploy-app waits at review with its state stored; a yes deploys, a no cancels;
    contexts merge, and the inputs are kept; the approver is recorded. Several runs are independent."""
    runs = await install(running, DEPLOY_APP)
    one = await begin(runs, DEPLOY_APP, version="1.10")
    two = await begin(runs, DEPLOY_APP, version="2.0")
    assert (one.status, one.state.current_step) == ("waiting_approval", "review")
    assert "Deploy http://app/1.10?" in one.approvals[0].detail.text
    assert one.approvals[0].expires_at - one.approvals[0].asked_at > timedelta(hours=1)
    assert (
        running.home.memory / f"blocks/{running.block}/workflows/runs/{one.record.start.run}.json"
    ).exists()
    assert one.frozen["workflow_name"] == "deploy-app" and one.frozen["frozen_at"]
    assert effects(running.workspace) == ["build", "build"]
    one, two = await decide(runs, one, True), await decide(runs, two, False)
    assert (one.status, two.status) == ("completed", "completed")
    assert effects(running.workspace) == ["build", "build", "deploy", "cancel"]
    context = one.frozen["context"]
    assert (context["version"], context["size"], context["deployed"]) == ("1.10", 3, "http://app/1.10")
    (approver,) = one.frozen["approvers"].values()
    assert approver["allow"] and approver["by"] == "channel:cli" and approver["at"]
    assert [visit.note for visit in two.state.visits if visit.step == "review"] == ["rejected"]


async def test_CC_T9_a_failed_action_fails_the_run(running: BlockClient) -> None:
    """CC-T9: an action's error fails the run with ``context.error``; with ``on_error`` the run goes on; with ``retry``
    it is repeated until it succeeds."""
    plain = workflow("plain", "id: a, type: action, action: effect, args: {mark: x, fail: 9}")
    failed = await begin(await install(running, plain), plain)
    assert failed.status == "failed" and "x failed" in failed.frozen["context"]["error"]
    assert "line 5" in failed.detail
    caught = workflow(
        "caught",
        "id: a, type: action, action: effect, args: {mark: y, fail: 2}, retry: {times: 2, backoff: 0.01}, next: b",
        "id: b, type: action, action: effect, args: {mark: z, fail: 9}, on_error: c",
        "id: c, type: action, action: effect, args: {mark: 'saw {{ error }}'}",
    )
    view = await begin(await install(running, caught), caught)
    assert view.status == "completed" and view.state.visits[0].attempts == 3
    assert effects(running.workspace) == ["x", "y", "y", "y", "z", "saw z failed"]


async def test_a_step_ends_at_its_timeout(running: BlockClient) -> None:
    """A step's ``timeout`` ends its call before the tool's own limit does, and a call that only reads is repeated."""
    text = workflow(
        "slow",
        "id: a, type: action, action: workflow_wait, args: {until: '{{ until }}'}, timeout: 1, "
        "retry: {times: 1, backoff: 0}, on_error: b",
        "id: b, type: action, action: effect, args: {mark: late}",
        inputs="{until: null}",
    )
    until = (utc_now() + timedelta(hours=1)).isoformat()
    view = await begin(await install(running, text), text, until=until)
    assert view.status == "completed" and effects(running.workspace) == ["late"]
    assert view.state.visits[0].attempts == 2 and "within 1 seconds" in view.state.visits[0].note


async def test_CC_F12_conditionals_waits_and_bounded_cycles(running: BlockClient) -> None:
    """CC-F12: a conditional follows a value of the context, a wait waits, and a cycle ends at its bound."""
    text = workflow(
        "loop",
        "id: look, type: action, action: effect, args: {mark: look, result: '{\"ready\": false}'}, "
        "next: ready, max_visits: 2",
        "id: ready, type: conditional, action: ready, on_approve: done, on_reject: pause",
        "id: pause, type: action, action: wait, args: {seconds: 0.01}, next: look",
        "id: done, type: action, action: effect, args: {mark: done}",
    )
    view = await begin(await install(running, text), text)
    assert view.status == "failed" and "more than 2 times" in view.detail
    assert effects(running.workspace) == ["look", "look"]


async def test_CC_T10_an_edited_file_does_not_change_a_run(running: BlockClient) -> None:
    """CC-T10: approved from any channel, a run whose file was edited is not continued: it asks again, and says so. A
    yes to that continues with the definition that it began with. A second decision is refused."""
    runs = await install(running, DEPLOY_APP)
    view = await begin(runs, DEPLOY_APP, version="1")
    await install(running, DEPLOY_APP.replace("mark: deploy", "mark: replaced"))
    asked = await decide(runs, view, True)
    assert asked.status == "waiting_approval" and asked.is_edited
    assert "was changed since this run began" in asked.approvals[0].detail.text
    assert effects(running.workspace) == ["build"]
    done = await decide(runs, asked, True)
    assert done.status == "completed" and effects(running.workspace) == ["build", "deploy"]
    (again,) = asked.approvals
    with pytest.raises(trunkline.RemoteFault):
        await runs.gateway.decide(again.turn, again.call, again.call_hash, allow=False)


async def test_CC_T10_a_run_is_migrated_by_a_command_alone(running: BlockClient) -> None:
    """CC-T10: a migrated run takes the edited file, asks again, and does not build again."""
    runs = await install(running, DEPLOY_APP)
    view = await begin(runs, DEPLOY_APP, version="1")
    edited = DEPLOY_APP.replace("mark: deploy", "mark: replaced")
    await install(running, edited)
    await runs.gateway.cancel(view.record.turn)
    moved = await runs.begin(parse_definition(edited), view.record.start.inputs, view)
    view = await settled(runs, await runs.view(moved))
    assert view.status == "waiting_approval" and not view.is_edited
    view = await decide(runs, view, True)
    assert view.status == "completed" and effects(running.workspace) == ["build", "replaced"]


async def test_agents_propose_and_cannot_install(running: BlockClient) -> None:
    """An agent's write below ``workflows/`` is refused; a proposal is shown to the owner as it is, whatever the
    policies permit, and is no workflow until a person installs it."""
    refused = await running.say('call:memory_write {"path": "workflows/x.yaml", "content": "x"} ;; say:done')
    assert "only the owner" in results(refused.events)[0]
    text = workflow("tidy", "id: a, type: action, action: effect, args: {mark: x}")
    call = json.dumps({"name": "tidy", "definition": text})
    accepted = await running.send(f"call:propose_workflow {call} ;; say:done")
    runs = Runs(running.bus, running.block)
    asked: list[Any] = []
    with anyio.fail_after(60):
        while not asked:
            asked = [one for one in await runs.gateway.waiting() if one.turn == accepted.turn]
            await anyio.sleep(0.05)
    assert asked[0].detail.text.strip() == text.strip()
    await runs.gateway.decide(asked[0].turn, asked[0].call, asked[0].call_hash, allow=True)
    assert "Only a person can install it" in results((await running.answer(accepted)).events)[0]
    assert await runs.files.names() == () and await runs.files.proposals() == ("tidy",)
    await runs.files.install("tidy", await runs.files.proposal("tidy") or "", proposed=True)
    assert await runs.files.names() == ("tidy",) and await runs.files.proposals() == ()
    call = json.dumps({"name": "no", "definition": "steps: []"})
    broken = await running.say(f"call:propose_workflow {call} ;; say:done")
    assert "line 1" in results(broken.events)[0]


async def test_a_template_that_cannot_be_filled_fails_the_run(running: BlockClient) -> None:
    """A missing name, and a mapping within a text, fail the run; the error has the step, the line and what is there."""
    text = workflow(
        "gap",
        "id: a, type: action, action: effect, args: {mark: a, result: '{\"list\": [1]}'}, next: b",
        "id: b, type: action, action: effect, args: {mark: 'x {{ steps.a.url }}'}",
    )
    view = await begin(await install(running, text), text)
    assert view.status == "failed"
    assert "'b'" in view.detail and "line 6" in view.detail and "steps.a has list" in view.detail


async def test_a_run_is_cancelled(running: BlockClient) -> None:
    """A cancelled run is ``cancelled``, and its approval is withdrawn."""
    runs = await install(running, DEPLOY_APP)
    view = await begin(runs, DEPLOY_APP, version="1")
    await runs.gateway.cancel(view.record.turn)
    with anyio.fail_after(60):
        while not view.ended:
            await anyio.sleep(0.05)
            view = await runs.view(view.record)
    assert view.status == "cancelled" and effects(running.workspace) == ["build"]


async def test_a_run_whose_request_was_lost_begins_once(running: BlockClient) -> None:
    """The record is there and the turn is not, as after a kill of the command: who reads the record begins the run, and
    who reads it a second time does not begin it again."""
    runs = await install(running, DEPLOY_APP)
    view = await begin(runs, DEPLOY_APP, version="1")
    lost = msgspec.structs.replace(view.record, turn="", conversation="")
    await runs.files.save(lost)
    found = await settled(runs, await runs.view(await runs.find(view.record.start.run[:5])))
    assert found.record.turn == view.record.turn and effects(running.workspace) == ["build"]


async def test_old_records_of_runs_are_forgotten(
    running: BlockClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest runs stay, and so does an old one that waits for a person."""
    monkeypatch.setattr("trunkline_workflow.runs.KEPT_RUNS", 1)
    runs = await install(running, DEPLOY_APP)
    old = utc_now() - timedelta(days=40)
    waiting = await begin(runs, DEPLOY_APP, version="1")
    await runs.files.save(msgspec.structs.replace(waiting.record, started_at=old))
    text = workflow("short", "id: a, type: action, action: effect, args: {mark: x}")
    ended = await begin(await install(running, text), text)
    await runs.files.save(msgspec.structs.replace(ended.record, started_at=old))
    last = await begin(runs, text)
    kept = {record.start.run for record in await runs.list()}
    assert kept == {waiting.record.start.run, last.record.start.run}


def results(events: Any) -> list[str]:
    return [event.output for event in events if isinstance(event, ToolEnded)]


async def test_policies_and_approvals_hold_for_steps(running: BlockClient) -> None:
    """CC-F16: a step is a call like any other. In a block that asks about every call a step waits for a person, and a
    no is not retried; a tool that the policies deny, such as a program, fails the run without a question."""
    await running.gateway.change_block(running.block, {"permissions.approvals": "all"})
    text = workflow(
        "asks", "id: a, type: action, action: effect, args: {mark: x}, retry: {times: 3, backoff: 0}"
    )
    runs = await install(running, text)
    view = await begin(runs, text)
    assert view.status == "waiting_approval" and view.approvals[0].tool == "effect"
    view = await decide(runs, view, False)
    assert view.status == "failed" and view.state.visits[0].attempts == 1
    text = workflow("shell", "id: a, type: action, action: execute_command, args: {command: 'true'}")
    view = await begin(await install(running, text), text)
    assert view.status == "failed" and "permission_denied" in view.detail
    assert effects(running.workspace) == []


async def test_a_step_gives_a_task_to_an_agent_and_uses_its_result(running: BlockClient) -> None:
    """The step waits for the agent. Its answer is data: a JSON object has fields that later steps name, and what these
    say is no template."""
    said = json.dumps({"size": 3, "note": "{{ steps.ask.size }}"})
    text = workflow(
        "asks-agent",
        "id: ask, type: action, action: agent_run, args: {task: 'say:{{ said }}'}, next: use",
        "id: use, type: action, action: effect, args: {mark: '{{ steps.ask.size }} {{ steps.ask.note }}'}",
        inputs="{said: null}",
    )
    view = await begin(await install(running, text), text, said=said)
    assert view.status == "completed", view.detail
    assert effects(running.workspace) == ["3 {{ steps.ask.size }}"]
    (task,) = (await running.gateway.agents(block=running.block)).tasks
    assert (task.state, task.parent.turn) == ("done", view.record.turn)


async def test_panic_ends_runs_and_refuses_new_ones(running: BlockClient) -> None:
    """CC-F17, C31: panic ends a run that waits and one that works; nothing more has an effect until it is released."""
    runs = await install(running, DEPLOY_APP)
    waiting = await begin(runs, DEPLOY_APP, version="1")
    text = workflow(
        "sleeper",
        "id: a, type: action, action: wait, args: {seconds: 3600}, next: b",
        "id: b, type: action, action: effect, args: {mark: awake}",
    )
    await install(running, text)
    asleep = await runs.view(await runs.begin(parse_definition(text), {}))
    with anyio.fail_after(60):
        while asleep.status != "running":
            await anyio.sleep(0.05)
            asleep = await runs.view(asleep.record)
    switch = KillSwitch(running.home.path)
    switch.engage("a test")
    try:
        with anyio.fail_after(60):
            while not asleep.ended:
                await anyio.sleep(0.05)
                asleep = await runs.view(asleep.record)
        refused = await begin(runs, DEPLOY_APP, version="2")
        assert refused.status in ("failed", "cancelled")
    finally:
        switch.release()
    assert asleep.status in ("failed", "cancelled")
    assert effects(running.workspace) == ["build"]
    after = await runs.view(waiting.record)
    if not after.ended:
        after = await decide(runs, after, False)
    assert after.ended and effects(running.workspace) in (["build"], ["build", "cancel"])


async def test_CC_F11_the_command_line(running: BlockClient, tmp_path: Path) -> None:
    """CC-F11: check, install, run, show, approve, deny, logs and cancel by commands; a mistake, an unknown run and a
    second approval exit non-zero; an edited file is refused until a flag or ``migrate`` says how to go on."""

    async def trunkline_workflows(*arguments: str, status: int = 0) -> str:
        home, words = running.home.path, ["workflows", *arguments, "--block", running.block]
        ran = await anyio.to_thread.run_sync(lambda: run_trunkline(home, *words))
        assert ran.returncode == status, (arguments, ran)
        return ran.stdout + ran.stderr

    file = tmp_path / "deploy-app.yaml"
    file.write_text(DEPLOY_APP.replace("action: effect", "action: efect", 1))
    assert "line 9: warning: The block" in await trunkline_workflows("check", str(file))
    file.write_text(DEPLOY_APP.replace("next: review", "next: revue"))
    assert "line 11: next of the step 'build' names 'revue'" in await trunkline_workflows(
        "check", str(file), "--no-tools", status=1
    )
    await trunkline_workflows("install", str(file), status=1)
    file.write_text(DEPLOY_APP)
    await trunkline_workflows("install", str(file))
    assert "needs the input 'version'" in await trunkline_workflows("run", "deploy-app", status=1)
    begun = json.loads(await trunkline_workflows("run", "deploy-app", "--input", "version=7", "--json"))
    assert begun["status"] == "waiting_approval" and begun["current_step"] == "review"
    assert "deploy-app" in await trunkline_workflows("list", "--runs")
    assert "class s1 waiting_approval" in await trunkline_workflows("show", "last", "--mermaid")
    file.write_text(DEPLOY_APP + "# edited\n")
    await trunkline_workflows("install", str(file))
    assert "was changed since" in await trunkline_workflows("approve", "last", status=1)
    done = await trunkline_workflows("approve", begun["run"], "--as-begun")
    assert "completed" in done and "approved by channel:cli" in done
    assert "waits for nobody" in await trunkline_workflows("approve", "last", status=1)
    rows = json.loads(await trunkline_workflows("logs", "last", "--json"))
    assert [row["tool"] for row in rows] == ["effect", "workflow_approval", "workflow_approval", "effect"]
    await trunkline_workflows("cancel", "last", status=1)
    await trunkline_workflows("show", "ffffffff", status=1)
    assert effects(running.workspace) == ["build", "deploy"]
