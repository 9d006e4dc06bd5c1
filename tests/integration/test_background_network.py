"""CC-F16, CC-T13: agents, schedules and workflows reach this machine's own network only under a grant for minutes, and
only as long as it lasts. A person makes it at a terminal."""

import json
import shutil
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import anyio
import msgspec
import pytest

import trunkline
from trunkline.api.model import ModelAdapter
from trunkline.cli._support.permissions import grant_for_minutes
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.policies.messages import Policy
from trunkline.contracts.schedules.paths import schedule_path
from trunkline.runtime.owner_policies import POLICY_FOLDER, read_policy_files
from trunkline.testing.platform import BLOCK, Platform, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline_pulse.schedule_changes import run_now
from trunkline_pulse.schedule_store import ScheduleStore
from trunkline_workflow.definition import parse_definition
from trunkline_workflow.runs import Runs

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]

REACHED = "was reached"


class Gate:
    """A plugin with a scripted model and a tool that waits until the test goes on."""

    def __init__(self) -> None:
        self.waits = anyio.Event()
        self.opened = anyio.Event()

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [ScriptedModel()]

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="read")
        async def pass_gate() -> str:
            """Wait at the gate."""
            self.waits.set()
            await self.opened.wait()
            return "passed"

        return [pass_gate]


@pytest.fixture
async def gate(anyio_backend: str) -> Gate:
    return Gate()


@pytest.fixture
async def running(gate: Gate, tmp_path: Path) -> AsyncIterator[Platform]:
    config = {
        "runtime.provider_adapter": "scripted",
        "plugins.pulse.time_zone": "UTC",
        "permissions.allow_shell": True,
        "permissions.allow_network": True,
    }
    async with platform(tmp_path / "home", plugins=[gate], config=config) as one:
        yield one


@pytest.fixture
def program() -> Iterator[str]:
    """The arguments of a program that connects to a port on this machine's loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = (
            f"import socket; socket.create_connection({server.getsockname()!r}, 5); print('was ' + 'reached')"
        )
        yield json.dumps({"command": ["python3", "-c", code], "network": True})


async def by_agent(running: Platform, program: str) -> bool:
    """Report whether an agent below a person's turn reaches the port."""
    task = f"call:execute_command {program}\nquote"
    answer = await running.say(f"call:agent_run {json.dumps({'task': task})}\nquote")
    return REACHED in answer.text


async def by_schedule(running: Platform, program: str) -> bool:
    """Report whether the turn of a schedule does."""
    name = f"port-{datetime.now(UTC):%H%M%S%f}"
    text = f"instruction = '''call:execute_command {program}\nquote'''\nevery = 86400\n"
    request = WriteManyMemory(files={schedule_path(BLOCK, name): text}, actor="owner")
    await running.bus.call(MEMORY_WRITE_MANY, request, timeout=20.0)
    with anyio.fail_after(120):
        while await ScheduleStore(running.bus).state(BLOCK, name) is None:  # noqa: ASYNC110  asked over the bus
            await anyio.sleep(0.05)
        await run_now(running.bus, name, BLOCK)
        while True:
            state = await ScheduleStore(running.bus).state(BLOCK, name)
            if state is not None and state.runs and state.runs[0].ended_at is not None:
                view = await running.gateway.conversation(state.runs[0].conversation)
                return any(
                    REACHED in message.content for message in view.messages if message.role == "assistant"
                )
            await anyio.sleep(0.05)


async def by_workflow(running: Platform, program: str) -> bool:
    """Report whether the step of a workflow does."""
    step = {"id": "port", "type": "action", "action": "execute_command", "args": json.loads(program)}
    text = f"name: port\ndescription: Connect.\nsteps:\n  - {json.dumps(step)}\n"
    runs, definition = Runs(running.bus, BLOCK), parse_definition(text)
    await runs.files.install(definition.name, text, proposed=False)
    view = await runs.view(await runs.begin(definition, {}))
    with anyio.fail_after(60):
        while not view.ended:
            await anyio.sleep(0.05)
            view = await runs.view(view.record)
    return any(REACHED in str(result) for result in view.journal.results.values())


async def test_CC_T13_background_work_reaches_loopback_only_by_a_grant(
    running: Platform, program: str
) -> None:
    """Programs may use a network here, and yet not this machine's own. A grant for minutes holds for all of them until
    its end; a grant for one conversation holds for no agent, schedule or workflow."""
    ways = (by_agent, by_schedule, by_workflow)
    assert not any([await way(running, program) for way in ways])
    await grant_for_minutes(running.bus, BLOCK, "host-network", 30, "conv_other")
    assert not any([await way(running, program) for way in ways])
    await grant_for_minutes(running.bus, BLOCK, "host-network", 30)
    assert [await way(running, program) for way in ways] == [True] * len(ways)
    await grant_for_minutes(running.bus, BLOCK, "host-network", 0)
    assert not any([await way(running, program) for way in ways])


async def test_CC_F16_an_expired_grant_ends_for_a_running_agent(
    running: Platform, gate: Gate, program: str
) -> None:
    """The agent began under the grant and used it; its next program after the grant's time does not."""
    await grant_for_minutes(running.bus, BLOCK, "host-network", 30)
    task = (
        f"call:execute_command {program}\nquote\ncall:pass_gate {{}}\ncall:execute_command {program}\nquote"
    )
    accepted = await running.send(f"call:agent_run {json.dumps({'task': task})}\nquote")
    with anyio.fail_after(60):
        await gate.waits.wait()
    await expire_grants(running)
    gate.opened.set()
    await running.answer(accepted)
    (found,) = (await running.gateway.agents(conversation=accepted.conversation)).tasks
    view = await running.gateway.conversation(found.conversation, include_tools=True)
    results = [message.content for message in view.messages if message.role == "tool"]
    assert [REACHED in result for result in results] == [True, False, False]


async def expire_grants(running: Platform) -> None:
    """Let the time of every grant of this machine's network be over."""
    files = {}
    for file in await read_policy_files(running.bus):
        if file.path.startswith(f"{POLICY_FOLDER}/host-network-"):
            policy = msgspec.json.decode(file.content, type=Policy)
            over = msgspec.structs.replace(policy.conditions, until=datetime.now(UTC))
            files[file.path] = msgspec.json.encode(msgspec.structs.replace(policy, conditions=over)).decode()
    assert files
    await running.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files=files, actor="owner"), timeout=20.0)
