"""Split tasks at a platform: steps at once and one after the other, failures, approval, and what people see."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest

import trunkline
from tests.block_client import BlockClient, stopped_at_the_end
from trunkline import ErrorCode
from trunkline.api.model import ModelAdapter, ModelError, ModelRequest
from trunkline.contracts.approvals.messages import Approval
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

TASK = "Compare the tides of the two harbours A and B, and draw the curves."
STEPS = [
    {"description": "Look up A", "category": "research", "after": []},
    {"description": "Look up B", "category": "research", "after": []},
    {"description": "Draw both", "category": "code", "after": [1, 2]},
]
FAILURE = ModelError(ErrorCode.INVALID_REQUEST, "refused", "scripted")


class Vendor:
    """A model that splits, works and joins by a script. ``work`` maps descriptions to results of agents."""

    def __init__(self) -> None:
        self.model = ScriptedModel(self._answer)
        self.begin()

    def begin(self, steps: Any = STEPS, join: Any = "The curves are drawn.") -> None:
        self.model.requests.clear()
        self.steps = [steps if isinstance(steps, Exception) else json.dumps(steps)]
        self.join: Any = join
        self.work: dict[str, Any] = {}

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]

    def _answer(self, request: ModelRequest) -> Any:
        said = next(message.content for message in reversed(request.messages) if message.role == "user")
        if request.purpose == "route":
            return "full"
        if request.purpose == "split":
            return [self.steps.pop(0)] if len(self.steps) > 1 else [self.steps[0]]
        if request.purpose == "join":
            return self.join if isinstance(self.join, list) else [self.join]
        if said.startswith("Step "):
            description = said.split("\n")[1]
            result = self.work.get(description, f"result of {description}")
            return result if isinstance(result, list) else [result]
        return "an answer of one agent"

    def tasks(self) -> list[str]:
        """The tasks of agents, in the order in which they began."""
        said = [request.messages[-1].content for request in self.model.requests]
        return [text for text in said if text.startswith("Step ")]

    def asked(self, purpose: str) -> list[ModelRequest]:
        return [request for request in self.model.requests if request.purpose == purpose]


@pytest.fixture(scope="module")
def vendor() -> Vendor:
    return Vendor()


@pytest.fixture(scope="module")
async def shared(vendor: Vendor) -> AsyncIterator[Platform]:
    config = {
        "runtime.provider_adapter": "scripted",
        "models.prices": {"scripted": {"input": 1.0, "output": 1.0}},
    }
    async with platform(plugins=[vendor], config=config) as running:
        yield running


@pytest.fixture
async def running(shared: Platform, vendor: Vendor) -> AsyncIterator[BlockClient]:
    vendor.begin()
    async with stopped_at_the_end(shared) as client:
        yield client


async def switch(client: BlockClient, orchestrator: str) -> None:
    text = f'[router]\non = true\norchestrator = "{orchestrator}"\n'
    await client.bus.call(MEMORY_WRITE, WriteMemory(path="preferences.toml", content=text, actor="owner"))


async def asked(client: BlockClient) -> Approval:
    """Wait for a question to the owner."""
    with anyio.fail_after(60):
        while not (waiting := await client.gateway.waiting()):  # noqa: ASYNC110  it is asked over the bus
            await anyio.sleep(0.02)
    return waiting[0]


async def reply(client: BlockClient, question: Approval, text: str) -> None:
    await client.gateway.decide(question.turn, question.call, question.call_hash, allow=True, answer=text)


async def asked_again(client: BlockClient, before: Approval) -> Approval:
    """Wait for another question than this one."""
    with anyio.fail_after(60):
        while (question := await asked(client)).call == before.call:  # noqa: ASYNC110  it is asked over the bus
            await anyio.sleep(0.02)
    return question


async def test_MN_F8_steps_run_at_once_or_after_each_other_and_are_joined(
    running: BlockClient, vendor: Vendor
) -> None:
    """The first two steps run at the same time: each waits until both have begun. The third one sees their results."""
    await switch(running, "on")
    both = anyio.Event()
    begun = 0

    async def meet() -> None:
        nonlocal begun
        begun += 1
        if begun == 2:
            both.set()
        await both.wait()

    vendor.work = {"Look up A": [meet, "high tide"], "Look up B": [meet, "low tide"]}
    answer = await running.say(TASK)
    assert answer.text.endswith("The curves are drawn.")
    *first, last = vendor.tasks()
    assert sorted(text.split("\n")[1] for text in first) == ["Look up A", "Look up B"]
    assert "high tide" in last and "low tide" in last and last.startswith("Step 3 of 3 (code)\nDraw both")
    (join,) = vendor.asked("join")
    assert all(text in join.messages[-1].content for text in (TASK, "high tide", "result of Draw both"))
    assert not join.tools
    tasks = (await running.gateway.agents(conversation=answer.accepted.conversation)).tasks
    assert [(task.state, task.parent.turn) for task in tasks] == [("done", answer.accepted.turn)] * 3


async def test_MN_F9_progress_is_text_that_every_channel_shows(running: BlockClient, vendor: Vendor) -> None:
    """The steps, and a line for each step that begins."""
    await switch(running, "on")
    answer = await running.say(TASK)
    steps = (
        "[research] Look up A (at once)",
        "[research] Look up B (at once)",
        "[code] Draw both (after 1, 2)",
    )
    listed = "\n".join(["Steps:", *(f"{number}. {step}" for number, step in enumerate(steps, start=1))])
    assert answer.text.startswith(f"{listed}\n\n[Step 1/3: Look up A]\n[Step 2/3: Look up B]\n")
    assert "[Step 3/3: Draw both]\n" in answer.text
    (split,) = vendor.asked("split")
    assert not split.reasoning and "fetch_webpage" in split.messages[-1].content


async def test_MN_T4_a_failed_step_is_named_in_the_final_answer(running: BlockClient, vendor: Vendor) -> None:
    """The other steps run, and the step that needs it learns that it failed."""
    await switch(running, "on")
    vendor.work = {"Look up B": FAILURE}
    answer = await running.say(TASK)
    assert "The curves are drawn." in answer.text
    assert "Step 2 failed (Look up B): " in answer.text.split("The curves are drawn.")[1]
    assert "It failed: " in vendor.tasks()[-1] and answer.ended.reason == "stop"


async def test_MN_T4_without_a_joining_model_the_results_are_the_answer(
    running: BlockClient, vendor: Vendor
) -> None:
    """Those of all steps, in their order."""
    await switch(running, "on")
    vendor.begin(join=FAILURE)
    answer = await running.say(TASK)
    places = [answer.text.find(f"result of {name}") for name in ("Look up A", "Look up B", "Draw both")]
    assert -1 not in places and places == sorted(places) and answer.ended.reason == "stop"


async def test_a_task_of_one_step_is_answered_by_the_model(running: BlockClient, vendor: Vendor) -> None:
    """No agent runs. The same holds if the model that splits answers nonsense or fails."""
    await switch(running, "on")
    for steps in (STEPS[:1], "nonsense", FAILURE):
        vendor.begin(steps=steps)
        assert (await running.say(TASK)).text == "an answer of one agent"
        assert vendor.tasks() == [] and not vendor.asked("join")


async def test_the_owner_approves_the_steps_or_changes_them(running: BlockClient, vendor: Vendor) -> None:
    """No step runs before. Other words ask for other steps, which the owner is asked about again."""
    await switch(running, "ask")
    accepted = await running.send(TASK)
    question = await asked(running)
    assert "3. [code] Draw both (after 1, 2)" in str(question.detail)
    assert vendor.tasks() == []
    vendor.begin(steps=[STEPS[0], {"description": "Draw one", "category": "code"}])
    await reply(running, question, "Only harbour A, please.")
    second = await asked_again(running, question)
    assert "Only harbour A, please." in vendor.asked("split")[0].messages[-1].content
    await reply(running, second, "Run these steps")
    answer = await running.answer(accepted)
    assert [text.split("\n")[1] for text in vendor.tasks()] == ["Look up A", "Draw one"]
    assert answer.text.endswith("The curves are drawn.")


async def test_refused_steps_do_not_run(running: BlockClient, vendor: Vendor) -> None:
    """The turn ends and says so."""
    await switch(running, "ask")
    accepted = await running.send(TASK)
    await reply(running, await asked(running), "Do not run them")
    assert (await running.answer(accepted)).text.endswith("The steps were not run.")
    assert vendor.tasks() == []


async def test_the_turn_of_a_step_is_routed_by_its_category_alone(
    running: BlockClient, vendor: Vendor
) -> None:
    """No model is asked about it, and it is not split again, although the step of category ``full`` is large."""
    await switch(running, "on")
    large = {"description": "Write about every harbour between A and B in a.md and b.pdf", "category": "full"}
    vendor.begin(steps=[STEPS[0], large])
    await running.say(TASK)
    assert len(vendor.asked("split")) == len(vendor.asked("route")) == 1
    work = [one for one in vendor.asked("turn") if one.messages[-1].content.startswith("Step ")]
    assert [one.route.category for one in work if one.route] == ["research", "full"]
    assert "write_file" not in {tool.name for tool in work[0].tools}


async def test_MN_F6_a_trivial_message_is_not_split(running: BlockClient, vendor: Vendor) -> None:
    """Although the router makes it ``full``."""
    await switch(running, "on")
    assert (await running.say("capital of France")).text == "an answer of one agent"
    assert not vendor.asked("split")
