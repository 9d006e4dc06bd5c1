"""Learning on a whole platform: once enabled, it learns from finished turns and gives the result to later ones."""

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

import trunkline
from tests.shared_model import SharedModel
from trunkline import LifespanContext
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.memory.chunk import Chunk, ChunkMetadata
from trunkline.contracts.memory.chunks import FindLinked, ListChunks, RecalledChunk, RecallResult
from trunkline.contracts.memory.files import MemoryFile
from trunkline.contracts.memory.history import BlameMemory, MemoryHistory
from trunkline.contracts.memory.subjects import MEMORY_BLAME, MEMORY_CHUNKS, MEMORY_HISTORY, MEMORY_LINKED
from trunkline.contracts.turns.context import ContextGap, ContextPart, TurnInfo
from trunkline.contracts.turns.messages import TurnFact, TurnRequested
from trunkline.testing.platform import clean_environ
from trunkline_learning.context_source import LearningContextSource
from trunkline_learning.learner import Learner
from trunkline_learning.preferences import LearningPreferences

from .learning_platform import (
    WORDS_ALONE,
    LearningClient,
    facts_of,
    learned,
    learning,
    learning_client,
    passed_over,
    said,
    texts,
    until,
)

pytestmark = pytest.mark.anyio


async def test_learning_starts_with_the_first_turn_after_it_is_enabled(running: LearningClient) -> None:
    """Learning is off by default; a line in preferences.toml switches it on without a restart, also back."""
    await running.prefer("")
    await running.say('call:open_shelf {"name": "a"}')
    await until(lambda: passed_over(running, 1))
    (running.home.memory / "preferences.toml").write_text(WORDS_ALONE)  # by hand, as a person does
    await said(running, 'call:open_shelf {"name": "b"}')
    episodes = texts(running, "models/*/episodes/*/*.json")
    assert [episode["tools"] for episode in episodes] == [["open_shelf"]]
    assert '"b"' in episodes[0]["task"] and learned(running) == 1


async def test_a_single_request_is_learned_from_once_the_client_continues(running: LearningClient) -> None:
    """A client that only requests a title, for example, starts no conversation to learn from."""
    single = await running.say('call:open_shelf {"name": "a"}', history=(), one_shot=True)
    await said(running, 'call:open_shelf {"name": "b"}')
    [episode] = texts(running, "models/*/episodes/*/*.json")
    assert '"b"' in episode["task"]
    await said(running, 'call:open_shelf {"name": "c"}', conversation=single.accepted.conversation)
    assert len(texts(running, "models/*/episodes/*/*.json")) == 2


async def test_an_episode_records_task_tools_outcome_and_origin(tmp_path: Path) -> None:
    """MN-F22: task, tools, outcome and the source are stored; the person's next message decides about its success."""
    async with learning(tmp_path / "home") as own:
        running = await learning_client(*own)
        first = await said(running, 'call:open_shelf {"name": "a"} ;; say:It is open now.')
        [episode] = texts(running, "models/*/episodes/*/*.json")
        assert episode["verdict"] == "unknown" and episode["outcome"] == "It is open now."
        assert episode["source"]["turn"] == first.accepted.turn and episode["source"]["message"]
        await said(running, "thanks that worked", conversation=first.accepted.conversation)
        [episode] = texts(running, "models/*/episodes/*/*.json")
        assert (episode["verdict"], episode["judged_by"]) == ("success", "next message")
        changes = (await running.bus.call(MEMORY_HISTORY, MemoryHistory(path="models"))).changes
        assert {change.author for change in changes} == {"learner"} and len(changes) == 2


async def test_cc_f19_facts_are_chunks_found_by_session_time_and_role(
    running: LearningClient,
) -> None:
    """CC-F19, MN-F22: a person's statement about themselves is a chunk that names conversation, turn and message."""
    first = await said(running, "I live in Lisbon. Please write a poem. I prefer dark mode.")
    middle = datetime.now(UTC)
    second = await said(running, "We decided to use Postgres.")
    kept = await facts_of(running)
    assert {(one.type, one.content) for one in kept} == {
        ("fact", "I live in Lisbon."), ("preference", "I prefer dark mode."),
        ("decision", "We decided to use Postgres."),
    }  # fmt: skip
    assert {one.metadata.turn_id for one in kept} == {first.accepted.turn, second.accepted.turn}
    assert all(one.metadata.message_id and one.metadata.source == "learned" for one in kept)
    session = await facts_of(running, conversation_id=second.accepted.conversation)
    assert [one.content for one in session] == ["We decided to use Postgres."]
    assert len(await facts_of(running, created_before=middle)) == 2
    said_by = ListChunks(actor="owner", block=running.block, tags=("learned", "said-by-user"))
    assert (await running.bus.call(MEMORY_CHUNKS, said_by)).total == 3


async def test_a_fact_is_stored_once_and_a_contradiction_is_linked(
    running: LearningClient,
) -> None:
    """Both facts stay, and the newer one is linked as contradicting the older."""
    await said(running, "I live in Lisbon.")
    await said(running, "As I said, well: I live in Lisbon.")
    await said(running, "I live in Lisbon")
    await said(running, "I live in Porto now.")
    kept = {one.content: one for one in await facts_of(running)}
    assert "I live in Porto now." in kept and "I live in Lisbon." in kept
    assert "I live in Lisbon" not in kept
    request = FindLinked(
        id=kept["I live in Lisbon."].id, actor="owner", block=running.block, link_type="contradicts"
    )
    links = (await running.bus.call(MEMORY_LINKED, request)).links
    assert kept["I live in Porto now."].id in {link.chunk.id for link in links}
    await said(running, "I live in Lisbon.")
    newest, *_ = await facts_of(running)
    assert newest.content == "I live in Lisbon.", "who moves back is believed"


async def test_a_failure_adds_a_strategy_for_the_next_similar_task(
    running: LearningClient, model: SharedModel
) -> None:
    """MN-F23, MN-D5: the strategy is chosen by the task on every turn, with its id, and not shown for other tasks."""
    await said(running, 'call:open_shelf {"name": "missing"} ;; say:Unable to open it.')
    [strategy] = texts(running, "models/*/playbook/*.json")
    assert strategy["context"] == "open_shelf: file not found" and strategy["outcome"] == "failure"
    for _ in range(20):  # what was learned is found once it is in the index
        await running.say("Open the shelf of the missing file")
        if strategy["id"] in context_of(model):
            break
    assert f"[{strategy['id']}] helpful=0 harmful=0 :: " in context_of(model)
    await running.say("Tell me a joke about cats")
    assert strategy["id"] not in context_of(model)


def context_of(model: SharedModel) -> str:
    """Return the model's context without the last message."""
    return "\n".join(message.content for message in model.requests[-1].messages[:-1])


async def cli(running: LearningClient, *words: str) -> tuple[int, str]:
    """Return the output of a command that a person runs against this platform."""
    program = [sys.executable, "-m", "trunkline.cli.main", *words]
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(running.home.path)}
    done = await anyio.run_process(program, env=environ, check=False, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode()


async def test_people_can_list_and_remove_learned_items(running: LearningClient) -> None:
    """status, facts, episodes, playbook, profile and forget, also as JSON."""
    await said(running, "I live in Lisbon.")
    await said(running, "I live in Porto.")
    await said(running, 'call:open_shelf {"name": "missing"} ;; say:Unable to open it.')
    status, reported = await cli(running, "learning", "status")
    assert status == 0 and "Learning is on; no model is asked." in reported and "scripted" in reported
    assert "Learned from 3 turns" in reported and "0 of 1, 2 unknown" in reported and "%" not in reported
    facts = json.loads((await cli(running, "learning", "facts", "--json"))[1])
    assert [fact["text"] for fact in facts] == ["I live in Porto.", "I live in Lisbon."]
    assert facts[0]["contradicts"][0]["id"] == facts[1]["id"] and facts[0]["turn"]
    assert "contradicts" in (await cli(running, "learning", "facts"))[1]
    [episode] = json.loads((await cli(running, "learning", "episodes", "--json"))[1])
    assert episode["verdict"] == "failure"
    books = json.loads((await cli(running, "learning", "playbook", "--json"))[1])
    [strategy] = books["scripted"]
    assert strategy["id"] in (await cli(running, "learning", "playbook"))[1]
    assert (await cli(running, "learning", "profile"))[0] == 0
    ids = (strategy["id"], episode["id"], facts[0]["id"], "profile")
    assert await cli(running, "learning", "forget", *ids) == (0, "Forgot 4 things.\n")
    status, reported = await cli(running, "learning", "forget", "pit-none")
    assert status == 1 and "There is no pit-none" in reported
    assert len(await facts_of(running)) == 1 and not texts(running, "models/*/playbook/*")
    status, reported = await cli(running, "learning", "forget", "--all")
    assert status == 1 and "--yes" in reported
    assert (await cli(running, "learning", "forget", "--all", "--yes"))[0] == 0
    assert not await facts_of(running) and not texts(running, "models/*/metrics.json")


async def test_mn_f22_episode_playbook_and_numbers_share_one_verdict(
    running: LearningClient, model: SharedModel
) -> None:
    """MN-F22: a turn with an error counts as failed until the person says thanks; then episode and numbers say success,
    and its strategies lose the mark. A correction afterwards changes a verdict in the same way."""

    async def numbers() -> tuple[int, int, float]:
        found = texts(running, "models/*/metrics.json")[0]
        [day] = found["daily_stats"].values()
        assert (day["successful"], day["failed"]) == (found["successful"], found["failed"])
        return found["successful"], found["failed"], found["success_rate"]

    await said(running, 'call:open_shelf {"name": "missing"} ;; say:Here you are.')
    assert await numbers() == (0, 1, 0.0)
    second = await said(
        running, 'call:open_shelf {"name": "missing"} ;; say:Here you are again, from the shelf.'
    )
    [strategy] = texts(running, "models/*/playbook/*.json")
    assert f"[{strategy['id']}]" in context_of(model) and strategy["harmful"] == 1
    await said(running, "thanks, perfect", conversation=second.accepted.conversation)
    verdicts = {one["source"]["turn"]: one["verdict"] for one in texts(running, "models/*/episodes/*/*.json")}
    assert verdicts[second.accepted.turn] == "success" and await numbers() == (1, 1, 0.5)
    [strategy] = texts(running, "models/*/playbook/*.json")
    assert strategy["helpful"] == 1 and "harmful" not in strategy


async def test_every_learned_line_names_its_turn(running: LearningClient) -> None:
    """History blames each line of profile, episode, strategy and numbers to the learner, conversation and turn."""
    answer = await said(running, 'call:open_shelf {"name": "missing"} ;; say:Unable to open it.')
    for pattern in (
        "profile.json",
        "models/*/playbook/*",
        "models/*/episodes/*/*",
        "models/*/metrics.json",
    ):
        [path] = running.home.memory.glob(pattern)
        request = BlameMemory(path=path.relative_to(running.home.memory).as_posix())
        for span in (await running.bus.call(MEMORY_BLAME, request)).spans:
            accepted = answer.accepted
            assert (span.author, span.turn) == ("learner", accepted.turn)
            assert span.conversation == accepted.conversation


async def test_concurrent_learners_learn_a_turn_once(running: LearningClient) -> None:
    """A turn that reaches two learners, even despite the pin, is counted once, and neither overwrites the other."""
    await running.prefer("")
    answers = [await running.say(f"I prefer colour{number} walls.") for number in range(4)]
    await until(lambda: passed_over(running, 4))
    choices = LearningPreferences(on=True, model="none")
    context = LifespanContext("monitor", running.bus, "learning")
    first, second = Learner(context), Learner(context)
    done: list[bool] = []

    async def learn(learner: Learner, turn: TurnFact) -> None:
        done.append(await learner.learn(turn, choices))

    async with anyio.create_task_group() as tasks:
        for answer in answers:
            fact = TurnFact(
                turn=answer.accepted.turn,
                block=running.block,
                conversation=answer.accepted.conversation,
                fact="finished",
            )
            tasks.start_soon(learn, first, fact)
            tasks.start_soon(learn, second, fact)
    assert sorted(done) == [False] * 4 + [True] * 4
    profile = json.loads((running.home.memory / "profile.json").read_text())
    assert learned(running) == profile["interaction_count"] == 4


async def test_a_persons_edit_is_kept_and_a_broken_file_is_skipped(running: LearningClient) -> None:
    """Learning continues from a person's edit of a strategy; a file that is not JSON is skipped and left unchanged."""
    await said(running, 'call:open_shelf {"name": "missing"} ;; say:Unable to open it.')
    [path] = running.home.memory.glob("models/*/playbook/*.json")
    mine = {**json.loads(path.read_text()), "strategy": "Look twice", "helpful": 40}
    path.write_text(json.dumps(mine))
    (path.parent / "pit-broken00.json").write_text("{ half")
    await said(running, 'call:open_shelf {"name": "missing"} ;; say:Unable to open it. Again.')
    now = json.loads(path.read_text())
    assert (now["strategy"], now["helpful"], now["confidence"]) == ("Look twice", 40, 1.0)
    assert (path.parent / "pit-broken00.json").read_text() == "{ half"


class Defect:
    """Fails each request of the learner that contains a word."""

    @trunkline.hookimpl
    def trunkline_bus_middleware(self) -> Sequence[Any]:
        return [self]

    async def __call__(self, message: Any, proceed: Callable[[Any], Awaitable[None]]) -> None:
        request = message.envelope.data
        if (
            message.direction == "in"
            and getattr(request, "actor", "") == "learner"
            and "anvil" in str(request)
        ):
            raise RuntimeError("a defect")
        await proceed(message)


async def test_a_turn_that_memory_always_fails_is_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A defect of memory with one turn does not stop learning from the turns after it."""
    async with learning(tmp_path / "home", Defect()) as own:
        running = await learning_client(*own)
        await running.say("I own an anvil.")
        await said(running, "I live in Lisbon.")
        assert "it could not be learned from" in caplog.text
        [fact] = await facts_of(running)
        assert "Lisbon" in fact.content


async def test_nothing_is_learned_in_a_block_with_learning_off(running: LearningClient) -> None:
    """RLM-F21: a block's policy that turns memory off holds for the learner too."""
    (running.home.memory / "blocks" / running.block).mkdir(parents=True, exist_ok=True)
    (running.home.memory / "blocks" / running.block / "block.toml").write_text("[memory]\nenabled = false\n")
    await running.say("I live in Lisbon.")
    await until(lambda: passed_over(running, 1))
    assert learned(running) == 0 and not texts(running, "profile.json")


async def test_a_task_without_a_verdict_is_unknown(running: LearningClient) -> None:
    """A turn without a verdict counts as unknown, not as a failure: there is no rate, neither in the text nor in the
    JSON."""
    await said(running, "I live in Lisbon.")
    reported = (await cli(running, "learning", "status"))[1]
    assert (
        "1 unknown" in reported and "0" not in reported.splitlines()[-1].split()[-2:] and "%" not in reported
    )
    models = json.loads((await cli(running, "learning", "status", "--json"))[1])["models"]
    assert models["scripted"]["success_rate"] is None and models["scripted"]["unknown"] == 1


async def test_a_turn_does_not_wait_for_a_slow_lookup(tmp_path: Path) -> None:
    """The lookup has half a second. After that the turn continues without its result and reports this; facts that
    memory returned in time are still included."""
    fact = Chunk(
        id="chunk-2026-05-01-00000001", content="I live in Lisbon.", tokens=5, type="fact", layer="project_global",
        path="", tags=("learned",), metadata=ChunkMetadata(created_at=datetime.now(UTC), modified_at=datetime.now(UTC)),
    )  # fmt: skip

    class Slow:
        async def search(self, *_: object, **__: object) -> list[object]:
            await anyio.sleep_forever()
            return []

        async def recall(self, *_: object, **__: object) -> RecallResult:
            return RecallResult(chunks=(RecalledChunk(chunk=fact, score=1.0),))

        async def chunks(self, *_: object, **__: object) -> list[object]:
            return []

    files = {
        "/preferences.toml": MemoryFile(
            path="/preferences.toml", content=WORDS_ALONE, hash="", modified_at=datetime.now(UTC)
        )
    }
    request = TurnRequested(
        turn="t", block="main", conversation="c", message=Message(id="m", role="user", content="Open the shelf"),
        actor="owner", channel="test",
    )  # fmt: skip
    turn = TurnInfo(request, BlockConfig(), Slow(), files=files)  # type: ignore[arg-type]
    with anyio.fail_after(60):
        part, gap = await LearningContextSource()(turn)
    assert isinstance(part, ContextPart) and "I live in Lisbon." in part.text
    assert gap == ContextGap("learned playbook and earlier tasks", "memory took more than 0.5 s")


async def test_agents_query_facts_and_strategies(running: LearningClient) -> None:
    """known_facts by words, role and time, with what contradicts; playbook_strategies for a task."""
    await said(running, "I live in Lisbon.")
    await said(running, "I live in Porto.")
    await said(running, 'call:open_shelf {"name": "missing"} ;; say:Unable to open it.')
    reported = (
        await running.say('call:known_facts {"query": "where do I live", "role": "user"} ;; quote')
    ).text
    assert "I live in Porto." in reported and '"contradicted_by":["I live in Lisbon."]' in reported
    none = (await running.say('call:known_facts {"until": "2020-01-01"} ;; quote')).text
    assert "Lisbon" not in none
    wrong = (await running.say('call:known_facts {"since": "yesterday"} ;; quote')).text
    assert "since must be a date or time" in wrong
    strategies = (await running.say('call:playbook_strategies {"task": "open the shelf"} ;; quote')).text
    assert "[pit-" in strategies and "file not found" in strategies


async def test_another_models_strategies_and_the_profile_are_shown(
    running: LearningClient,
    model: SharedModel,
) -> None:
    """C25: items learned with another model are still shown after a change of models. With learning off, none are
    shown."""
    other = running.home.memory / "models/other_model/playbook/str-0000aaaa.json"
    other.parent.mkdir(parents=True)
    other.write_text(
        '{"id": "str-0000aaaa", "section": "strategies", "strategy": "Count bees twice", "context": "bees", '
        '"timestamp": "2026-05-01T12:00:00Z"}'
    )
    for _ in range(5):
        await said(running, "Count the bees")
    await until(lambda: says(running, model, "[str-0000aaaa] helpful="))
    assert "<profile>" in context_of(model) and "short answers" in context_of(model)
    (running.home.memory / "preferences.toml").write_text("[learning]\non = false\n")
    await until(lambda: says(running, model, "", without="<profile>"))
    assert "str-0000aaaa" not in context_of(model)


async def says(running: LearningClient, model: SharedModel, words: str, *, without: str = "\0") -> bool:
    """Check whether the model's next request contains the given words and lacks the others."""
    await running.say("Count the bees")
    return words in context_of(model) and without not in context_of(model)


async def test_rlm_f22_a_finished_task_and_a_resolved_issue_are_recorded(running: LearningClient) -> None:
    """RLM-F22: once the person says that it worked, a note of the task is kept with its source, once; talk is none."""

    async def notes(running: LearningClient) -> dict[str, Chunk]:
        request = ListChunks(actor="owner", block=running.block, tags=("milestone",))
        return {one.content: one for one in (await running.bus.call(MEMORY_CHUNKS, request)).chunks}

    done = await said(running, 'call:open_shelf {"name": "a"} ;; say:Open.')
    assert not await notes(running)
    talk = await said(running, "thanks that worked", conversation=done.accepted.conversation)
    [note] = (await notes(running)).values()
    assert note.content.startswith("Done: call:open_shelf") and "with open_shelf" in note.content
    assert (note.metadata.confidence, note.metadata.turn_id) == (0.95, done.accepted.turn)
    assert note.type == "note" and "task-completion" in note.tags
    await said(running, "great, thanks", conversation=talk.accepted.conversation)
    mended = await said(
        running, 'call:open_shelf {"name": "missing"} ;; call:open_shelf {"name": "b"} ;; say:Open now.'
    )
    await said(running, "perfect", conversation=mended.accepted.conversation)
    [other] = [one for text, one in (await notes(running)).items() if text != note.content]
    assert "after open_shelf had failed" in other.content and "issue-resolution" in other.tags
    assert (await cli(running, "learning", "forget", "--all", "--yes"))[0] == 0
    assert not await notes(running)


@pytest.mark.parametrize(
    ("preferences", "said"),
    [
        (
            '[learning]\non = true\nmodle = "none"\n',
            "preferences.toml, line 3: Object contains unknown field `modle`",
        ),
        ("[learning]\non = 'yes'\n", "preferences.toml, line 2: Expected `bool`, got `str`"),
        (f'{WORDS_ALONE}max_cost_usd = "0"\n', "preferences.toml, line 4: Expected `float`, got `str`"),
        (
            f"{WORDS_ALONE}[learning.markers]\nsucess = ['ok']\n",
            "preferences.toml, line 5: Object contains unknown",
        ),
        ('learning = "no"\n', "preferences.toml, line 1: Expected `object`, got `str`"),
        (
            '[lerning]\non = true\nmodel = "none"\n',
            "preferences.toml, line 1: there is no lerning. Did you mean learning?",
        ),
    ],
)
async def test_unreadable_preferences_disable_learning_and_are_reported(
    running: LearningClient, model: SharedModel, preferences: str, said: str
) -> None:
    """A misspelled line may have forbidden a model, so no text is sent to one; doctor and status name file and line."""
    await running.prefer(preferences)
    await running.say("I live in Lisbon.")
    await until(lambda: passed_over(running, 1))
    assert await facts_of(running) == [] and len(model.requests) == 1
    status, reported = await cli(running, "learning", "status")
    assert status == 0 and said in reported and reported.startswith("Learning is off, because")
    assert said in json.loads((await cli(running, "learning", "status", "--json"))[1])["problem"]
    checks = json.loads((await cli(running, "doctor", "--json"))[1])["checks"]
    [found] = [check for check in checks if check["id"] == "learning.preferences"]
    assert found["status"] == "warning" and said in found["summary"]
