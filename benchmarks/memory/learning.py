"""``learning``: what a turn pays for what was learned, and what learning itself costs, beside the turns."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from time import process_time
from typing import Any

import anyio

import trunkline
from benchmarks.figures import percentile
from benchmarks.memory.bench import Bench, BenchRow, spread, timed
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.contracts.memory.files import MemoryFile, WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.streams import FACT_STREAM, LEARNER_CONSUMER
from trunkline.contracts.turns.context import TurnInfo
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline_bus.streams.admin import consumer_state

STRATEGIES, EPISODES, TURNS = 500, 1_000, 60
WORDS = tuple("login test file folder server deploy build read write edit shelf title page".split(" "))  # noqa: SIM905
ON = '[learning]\non = true\nmodel = "none"\n'
TASK = "Fix the login test of the server in place20"


class ScriptedPlugin:
    """A model that answers at once."""

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[Any]:
        return [ScriptedModel()]


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """The lookup of one turn with full shelves; then turns with learning off and on."""
    config = {"runtime.provider_adapter": "scripted", "bus.sync_interval": "always"}
    async with platform(bench.folder / "home", plugins=[ScriptedPlugin()], config=config) as running:
        yield await _turns(running, bench.sized(TURNS, least=3))
        strategies, episodes = bench.sized(STRATEGIES, least=10), bench.sized(EPISODES, least=10)
        await _fill(running, strategies, episodes)
        yield await _lookup(
            running, bench.sized(100, least=3), f"{strategies} strategies, {episodes} episodes"
        )


async def _turns(running: Platform, turns: int) -> BenchRow:
    """The same turns, first without and then with learning, each begun when the learner is done with the one before:
    people take their time. The CPU is that of all workers, server apart."""
    costs, medians = [], []
    for preferences in ("", ON):
        await anyio.Path(running.home.memory / "preferences.toml").write_text(preferences)
        await anyio.sleep(0.5)
        begun = process_time()
        seconds: list[float] = []
        for number in range(turns):
            seconds += await timed(1, lambda _, n=number: running.say(f"say:I prefer colour{n} walls"))
            await _settled(running)
        medians.append(percentile(seconds, 0.5))
        costs.append((process_time() - begun) / turns)
    ratio, beside = medians[1] / medians[0], (costs[1] - costs[0]) * 1_000
    return BenchRow(
        "a turn with learning on, by one with it off", f"{ratio:.2f}, and {beside:.0f} ms of CPU beside it"
    )


async def _settled(running: Platform) -> None:
    """Wait until no turn waits to be learned from."""
    while True:
        state = await consumer_state(running.bus, FACT_STREAM, LEARNER_CONSUMER.name)
        if state.waiting + state.ack_pending == 0:
            return
        await anyio.sleep(0.05)


async def _lookup(running: Platform, times: int, shelves: str) -> BenchRow:
    from trunkline_learning.context_source import LearningContextSource

    request = TurnRequested(
        turn="t", block="main", conversation="c", message=Message(id="m", role="user", content=TASK),
        actor="owner", channel="test",
    )  # fmt: skip
    on = MemoryFile(path="/preferences.toml", content=ON, hash="", modified_at=datetime.now(UTC))
    memory = block_memory(running.bus, "main", "monitor")
    turn = TurnInfo(request, BlockConfig(), memory, model="scripted", files={"/preferences.toml": on})
    source, begun = LearningContextSource(), process_time()
    seconds = await timed(times, lambda _: source(turn))
    cpu = (process_time() - begun) / times * 1_000
    return BenchRow(f"lookup for a turn, {shelves}", f"{spread(seconds)}; {cpu:.0f} ms of CPU")


async def _fill(running: Platform, strategies: int, episodes: int) -> None:
    from trunkline_learning import files
    from trunkline_learning.episodes import Episode
    from trunkline_learning.playbook import Strategy
    from trunkline_learning.turns import Provenance

    at, many = datetime.now(UTC), len(WORDS)
    texts: dict[str, str] = {}
    for n in range(strategies):
        advice = f"Read the {WORDS[n % many]} before you {WORDS[n * 7 % many]} number{n}"
        one = Strategy(
            id=f"pit-{n:08}", section="pitfalls", strategy=advice, context=WORDS[n % 13], timestamp=at
        )
        texts[files.strategy_path("scripted", one.id)] = files.encode(one)
    for n in range(episodes):
        task = f"Fix the {WORDS[n % many]} {WORDS[n * 3 % many]} of place{n}"
        past = Episode(
            id=f"ep-{n}", task=task, tools=("edit",), outcome="done", verdict="success", judged_by="", model="scripted",
            source=Provenance(block="main", conversation=f"c{n}", turn=f"t{n}"), created_at=at,
        )  # fmt: skip
        texts[f"{files.episodes_folder('scripted')}/2026-01-{1 + n % 28:02}/{past.id}.json"] = files.encode(
            past
        )
    items = list(texts.items())
    for begin in range(0, len(items), 300):
        request = WriteManyMemory(files=dict(items[begin : begin + 300]), actor="learner")
        await running.bus.call(MEMORY_WRITE_MANY, request, timeout=60.0)
