"""``retrieval``: search on texts of many kinds, beside BM25, BM25 over windows of turns, and vectors, in one run.

Each collection has a store of its own, and then all of them share one. Questions name no kinds of passage. The figure
is recall@10: the share of a question's evidence among the first ten texts, averaged over the questions.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from benchmarks.figures import progress
from benchmarks.memory.baselines import Baselines
from benchmarks.memory.bench import Bench, BenchRow
from benchmarks.memory.collections import chats, code, dialogues, languages, mails, manuals, notes, tables
from benchmarks.memory.collections.collection import Collection, Question
from benchmarks.memory.recall import LOCAL, WORDS, embedded
from trunkline.contracts.conversations.messages import AppendConversation
from trunkline.contracts.memory.embedder import Embedder
from trunkline.contracts.memory.search import MemoryHit, SearchMemory
from trunkline.contracts.memory.store import Change
from trunkline_embedder.static import StaticEmbedder
from trunkline_git_store.store import GitMemoryStore

K = 10
DOCUMENTS = "documents/"
COMPARED = "BM25"
TOGETHER = "all in one store"

Shares = Mapping[str, float]


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """One row a collection, one for all in one store, and the mean and the worst difference to BM25."""
    collections = [_sized(bench, one) for one in all_collections()]
    differences: dict[str, dict[str, float]] = {WORDS: {}, LOCAL: {}}
    for name, group in [*((one.name, [one]) for one in collections), (TOGETHER, collections)]:
        progress(name)
        found = {way: await _searched(bench, name, group, way) for way in (WORDS, LOCAL)}
        compared = await _compared(group)
        for way, share in found.items():
            differences[way][name] = share - compared[COMPARED]
        shown = ", ".join(f"{way} {share:.1%}" for way, share in {**found, **compared}.items())
        yield BenchRow(f"retrieval, {name}", shown, ">= BM25", min(found.values()) >= compared[COMPARED])
    for way, by_name in differences.items():
        worst = min(by_name, key=lambda name: by_name[name])
        mean = sum(by_name.values()) / len(by_name)
        yield BenchRow(
            f"retrieval, difference to BM25, {way}",
            f"mean {100 * mean:+.1f} points, worst {100 * by_name[worst]:+.1f} ({worst})",
            "worst >= 0",
            by_name[worst] >= 0,
        )


def all_collections() -> list[Collection]:
    """Return the collections, the same on every machine with the same packages."""
    return [
        *(one.collection() for one in (dialogues, chats, notes, mails, tables, code, manuals)),
        *map(languages.collection, (languages.GERMAN, languages.FRENCH, languages.SPANISH)),
    ]


def _sized(bench: Bench, collection: Collection) -> Collection:
    questions = collection.questions[: bench.sized(len(collection.questions), 10)]
    return Collection(collection.name, questions, collection.conversations, collection.documents)


async def _searched(bench: Bench, name: str, collections: Sequence[Collection], way: str) -> float:
    embedder: Embedder | None = None if way == WORDS else StaticEmbedder()
    async with bench.store(f"{name}-{way}".replace(" ", "-"), sync=False, embedder=embedder) as store:
        for collection in collections:
            await bring(store, collection)
        await embedded(store)
        shares = []
        for question in _questions(collections):
            hits = await store.search(SearchMemory(query=question.text, limit=2 * K))
            shares.append(share_found(question, dict.fromkeys(map(_text_id, hits))))
        return sum(shares) / len(shares)


async def _compared(collections: Sequence[Collection]) -> Shares:
    baselines = Baselines(collections, StaticEmbedder())
    await baselines.embed()
    shares: dict[str, list[float]] = {}
    for question in _questions(collections):
        for method, ids in (await baselines.orders(question.text)).items():
            shares.setdefault(method, []).append(share_found(question, ids))
    return {method: sum(found) / len(found) for method, found in shares.items()}


async def bring(store: GitMemoryStore, collection: Collection) -> None:
    """Store the texts of a collection."""
    if collection.documents:
        files: dict[str, bytes | None] = {
            f"{DOCUMENTS}{one.id}": one.text.encode() for one in collection.documents
        }
        await store.change(Change(files, actor="benchmark", reason="Bring texts"))
    for conversation in collection.conversations:
        await store.append_conversation(
            AppendConversation(
                block="main", conversation=conversation.id, messages=conversation.messages, actor="benchmark"
            )
        )


def share_found(question: Question, ids: Iterable[str]) -> float:
    """Return which share of a question's evidence is among the first ten texts."""
    best = set(list(ids)[:K])
    return sum(not best.isdisjoint(texts) for texts in question.evidence) / len(question.evidence)


def _questions(collections: Sequence[Collection]) -> list[Question]:
    return [question for collection in collections for question in collection.questions]


def _text_id(hit: MemoryHit) -> str:
    return hit.path.removeprefix(DOCUMENTS) if hit.path.startswith(DOCUMENTS) else hit.id
