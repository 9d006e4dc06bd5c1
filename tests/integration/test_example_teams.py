"""The agent teams of docs/examples, as their files are, with a model that answers by a script."""

import shutil
import subprocess
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import anyio
import pytest

import trunkline
from trunkline import ToolCall
from trunkline.api.memory import MEMORY_WRITE_MANY, WriteManyMemory
from trunkline.api.schedule import ScheduleRun
from trunkline.contracts.actors import OWNER
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.models.adapter import Call, ModelRequest
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import Item, ScriptedModel
from trunkline_pulse.schedule_changes import run_now
from trunkline_pulse.schedule_store import ScheduleStore

from .approval_helpers import decide

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
TEAMS = ("morning-briefing", "cited-research", "repository-watcher")
TIDES = "# Tides\n\nHigh water at harbour A is at 6.\n\nHigh water at harbour B is at 9.\n"
WITHOUT_NAMES = ("-c", "user.name=x", "-c", "user.email=x@example.org")
DEFECT = "total.py, line 1: it adds 3. Replace 3 by 2."
"""What the scripted reviewer finds."""
needs_git = pytest.mark.skipif(
    shutil.which("bwrap") is None or shutil.which("git") is None, reason="bubblewrap and git are needed"
)


class Team:
    """A plugin with a model that answers each agent of the teams by its instructions and what its tools returned."""

    def __init__(self) -> None:
        self.model = ScriptedModel(self._answer)

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        return [self.model]

    def _answer(self, request: ModelRequest) -> list[Item]:
        last = max(number for number, one in enumerate(request.messages) if one.role == "user")
        task = request.messages[last].content
        results = [one.content for one in request.messages[last:] if one.role == "tool"]
        if task.startswith("Write my briefing"):
            return [f"Due today: {task.rpartition('- ')[2]}"]
        if task.startswith("When is high water"):
            return ["- When at harbour A?\n- When at harbour B?\n"]
        if task.startswith("When at harbour"):
            return self._research(task, results)
        if task.startswith("Question:"):
            return ["At A it is at 6 [documents/tides.md:3]. At B at 9 [/documents/tides.md:5], and at C at 7 "
                    "[documents/tides.md:70] [documents/none.md:1]."]  # fmt: skip
        if task.startswith("Review"):
            return ["It does." if "Does it do this?" in task else DEFECT]
        return self._edit(task, results)

    def _research(self, task: str, results: list[str]) -> list[Item]:
        if not results:
            return [_call(0, "read_lines", path="/documents/tides.md")]
        assert "3: High water at harbour A" in results[0]
        return [f"It is at {6 if 'A?' in task else 9} [documents/tides.md:{3 if 'A?' in task else 5}]"]

    def _edit(self, task: str, results: list[str]) -> list[Item]:
        branch = next(word.rstrip(",") for word in task.split() if word.startswith("proposal/"))
        change = {"path": "repo/total.py", "find": "3", "replace": "2"}
        calls = (
            _call(0, "git", command=["switch", "-c", branch], folder="repo"),
            _call(1, "replace_in_file", **change),
            _call(2, "git_commit", message="Add two", add_all=True, folder="repo"),
            _call(3, "git", command=["switch", "main"], folder="repo"),
        )
        refused = results and "denied" in results[-1].lower()
        return [calls[len(results)]] if len(results) < len(calls) and not refused else ["That is all."]


def _call(number: int, name: str, **arguments: object) -> Call:
    return Call(ToolCall(id=f"c{number}", name=name, arguments=arguments))


@pytest.fixture(scope="module")
def team() -> Team:
    return Team()


@pytest.fixture(scope="module")
async def running(
    anyio_backend: str, team: Team, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Platform]:
    """A platform whose memory has the files of all teams, copied as the READMEs say."""
    home = tmp_path_factory.mktemp("teams")
    for name in TEAMS:
        shutil.copytree(EXAMPLES / name / "blocks", home / "memory/blocks", dirs_exist_ok=True)
    settings = {"runtime.provider_adapter": "scripted", "permissions.approvals": "some"}
    async with platform(home, plugins=[team], config=settings) as started:
        yield started


async def run_of(running: Platform, block: str, name: str) -> tuple[ScheduleRun, list[Message]]:
    """Run a schedule by hand; the run when it has ended, and its conversation."""
    store = ScheduleStore(running.bus)
    with anyio.fail_after(180):
        while await store.state(block, name) is None:  # noqa: ASYNC110  it is asked over the bus
            await anyio.sleep(0.05)
        before = await store.state(block, name)
        known = {run.turn for run in before.runs} if before else set()
        await run_now(running.bus, name, block)
        while True:
            state = await store.state(block, name)
            new = [run for run in state.runs if run.turn not in known and run.ended_at] if state else []
            if new:
                return new[0], list((await running.gateway.conversation(new[0].conversation)).messages)
            await anyio.sleep(0.05)


async def write_memory(running: Platform, path: str, text: str) -> None:
    await running.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files={path: text}, actor=OWNER), timeout=60.0)


async def test_a_quiet_morning_asks_no_model_and_a_due_item_is_told(running: Platform, team: Team) -> None:
    """The shipped agenda has nothing due. The run is quiet, and no request is sent; a due line goes to the agent."""
    run, messages = await run_of(running, "briefing", "morning")
    assert (run.outcome, messages[-1].content) == ("quiet", "ALL QUIET")
    assert not [one for one in team.model.requests if one.block == "briefing"]
    today = datetime.now().astimezone().date()
    await write_memory(
        running, "blocks/briefing/agenda.md", f"- [ ] 2026-01-02 Late\n- {today} 10:00 Dentist\n"
    )
    run, messages = await run_of(running, "briefing", "morning")
    assert run.outcome == "finished" and "Dentist" in messages[-1].content
    (request,) = [one for one in team.model.requests if one.block == "briefing"]
    assert "- [ ] 2026-01-02 Late" in request.messages[-1].content


async def test_a_citation_that_does_not_exist_is_marked(running: Platform) -> None:
    """The question is split, each part is researched by an agent, and every citation of the answer is looked up."""
    await write_memory(running, "documents/tides.md", TIDES)
    answer = await running.say("When is high water at A and B?", block="research", model="cited")
    assert "[documents/tides.md:70 DOES NOT EXIST]" in answer.text
    assert "[documents/none.md:1 DOES NOT EXIST]" in answer.text
    assert "[documents/tides.md:3] High water at harbour A is at 6." in answer.text
    assert "4 citations were checked, 2 of them do not exist." in answer.text
    tasks = (await running.gateway.agents(conversation=answer.accepted.conversation)).tasks
    assert sorted(task.parent.types[-1] for task in tasks) == [
        "planner",
        "researcher",
        "researcher",
        "writer",
    ]


@needs_git
async def test_a_proposal_is_committed_with_a_persons_yes_only(running: Platform, team: Team) -> None:
    """Denied, nothing is written. Approved, a branch has the reviewed change. A commit is reviewed once."""
    repository = running.home.workspace("watcher") / "repo"
    repository.mkdir(parents=True)
    git(repository, "init", "-q", "-b", "main")
    first = commit(repository, "total = 1 + 3\n")
    report = (await watched(running, allow=False))[-1].content
    assert (
        report.startswith(f"Reviewed up to {first}.")
        and DEFECT in report
        and "Nothing was committed" in report
    )
    assert git(repository, "branch", "--format=%(refname:short)") == "main"
    count = len(team.model.requests)
    assert (await watched(running, allow=False))[-1].content == "ALL QUIET"
    assert len(team.model.requests) == count
    second = commit(repository, "total = 1 + 3  # two\n")
    messages = await watched(running, allow=True)
    tasks = [one.content for request in team.model.requests for one in request.messages]
    assert any(f"the commits {first}..{second}" in task for task in tasks)
    assert "It does." in messages[-1].content
    proposal = f"proposal/{second[:8]}"
    assert git(repository, "show", f"{proposal}:total.py") == "total = 1 + 2  # two"
    assert git(repository, "rev-parse", "main", f"{proposal}~1").split() == [second, second]


async def watched(running: Platform, *, allow: bool) -> list[Message]:
    """Run the schedule of the watcher while a person decides about each call that asks; its conversation."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(decide_all, running, allow)
        _, messages = await run_of(running, "watcher", "watch")
        tasks.cancel_scope.cancel()
    return messages


async def decide_all(running: Platform, allow: bool) -> None:
    decided: set[str] = set()
    while True:
        for asked in await running.gateway.waiting():
            if asked.id not in decided:
                decided.add(asked.id)
                await decide(running.gateway, asked, allow)
        await anyio.sleep(0.05)


def git(folder: Path, *words: str) -> str:
    """Return the output of this machine's git, outside of the sandbox."""
    environ = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "HOME": "/nonexistent",
    }
    command = ["git", *WITHOUT_NAMES, *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=environ)
    return done.stdout.strip()


def commit(repository: Path, text: str) -> str:
    """Commit the file, and return the commit."""
    (repository / "total.py").write_text(text)
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "Add")
    return git(repository, "rev-parse", "HEAD")
