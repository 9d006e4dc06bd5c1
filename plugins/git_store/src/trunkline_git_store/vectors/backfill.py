"""Making the vectors that are missing, in the background: a write is acknowledged long before its vector exists.

Newest first. What an embedder refuses is asked for again later, and never lost: what has no vector stands in the index.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Protocol, TypeVar

import anyio
import apsw
import msgspec

from trunkline.api.bus import Backoff
from trunkline.api.memory import Embedder, Vector
from trunkline.api.store import VectorStats
from trunkline_git_store.index.search_index import SearchIndex
from trunkline_git_store.search.candidates import load_candidates
from trunkline_git_store.search.passage_texts import PassageTextReader
from trunkline_git_store.vectors.embedding import embed_each, probe_dimensions
from trunkline_git_store.vectors.vector_store import VectorStore, quantize_int8, text_digest

_log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_CHARACTERS = 2_000
"""Of a passage that are embedded: models look at no more than some hundred words."""

QUERY_TIMEOUT = 5.0
"""Seconds that a search waits for the vector of its query."""

COUNT_SECONDS = 2.0
"""Seconds between two counts of passages during the backfill: among a million, a count takes as long as
embedding some."""

FIRST_RETRY_DELAY, MAX_RETRY_DELAY = 1.0, 60.0
"""The pauses after failures in a row; the last one ever after."""


class IndexQueryRunner(Protocol):
    """Runs a question on the index, one at a time."""

    def __call__(self, question: Callable[[apsw.Connection], T], /) -> Awaitable[T]: ...


class VectorProgress(msgspec.Struct, frozen=True):
    """The progress of the vectors. ``fault`` is the reason why it stopped."""

    passages: int = 0
    missing: int = 0
    fault: str = ""

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return 1.0 if not self.passages else round(1 - self.missing / self.passages, 4)


class VectorBackfill:
    """Keeps the vectors of one embedder abreast of the index."""

    def __init__(self, embedder: Embedder, space: VectorStore, index: SearchIndex) -> None:
        self.embedder = embedder
        self.space = space
        self.progress = VectorProgress()
        self._index = index
        self._filling = anyio.Lock()
        self._bought: dict[str, Vector | None] = {}
        """Vectors of texts that could not be stored yet, because the embedder failed before a batch was complete. They
        are not asked for again: a vendor would bill them again."""
        self._counted = -COUNT_SECONDS
        self._answers = True

    @property
    def share(self) -> float:
        """Of all passages, how many can be found by their meaning (0 to 1): none while the embedder does not answer."""
        return self.progress.share if self._answers else 0.0

    async def embed_query(self, text: str) -> bytes | None:
        """Return the query's vector; None when the embedder does not answer, and only words can be
        searched."""
        try:
            with anyio.fail_after(QUERY_TIMEOUT):
                (vector,) = await self.embedder.embed([text])
            self._answers = True
            return quantize_int8(vector)
        except Exception as error:
            self._answers = False
            self._failed(error)
            return None

    async def run(
        self, ask: IndexQueryRunner, *, on_progress: Callable[[VectorProgress], None] | None = None
    ) -> None:
        """Compute the missing vectors until none is missing.

        With ``on_progress`` it ends at the first failure; without, it retries for ever."""
        backoff = Backoff(FIRST_RETRY_DELAY, MAX_RETRY_DELAY)
        while (made := await self._make_batch(ask)) is not None:
            if made:
                backoff.reset()
            elif on_progress is not None:
                return
            else:
                await backoff.sleep()
            if on_progress is not None:
                on_progress(self.progress)
        self.progress = msgspec.structs.replace(self.progress, missing=0, fault="")

    async def _make_batch(self, ask: IndexQueryRunner) -> bool | None:
        """Make some vectors: whether the embedder did, or None when nothing is missing. One caller at a time, so that
        no text is embedded twice."""
        async with self._filling:
            unknown = await ask(self._missing_texts)
            if unknown is None:
                return None
            here = await ask(self.space.dimensions)
            try:
                if wanted := [text for text in unknown.values() if text not in self._bought]:
                    await embed_each(self.embedder, wanted, self._bought)
                made = {digest: self._bought[text] for digest, text in unknown.items()}
                dimensions = await self._dimensions(here, made)
            except Exception as error:
                self._failed(error)
                return False
            self._bought.clear()
            return await ask(partial(self._store, made=made, dimensions=dimensions))

    async def _dimensions(self, here: int, made: Mapping[bytes, Vector | None]) -> int:
        """Return the length of vectors that counts for a batch. ``here`` is that of the vectors that are kept.

        It is ``here`` when some of the batch has it. Otherwise the embedder is asked for the vector of a common word:
        a single text with a wrong vector must decide neither the length of all others nor that the model has changed.
        """
        lengths = {len(vector) for vector in made.values() if vector is not None}
        return here if here in lengths or not lengths else await probe_dimensions(self.embedder)

    def prune(self, connection: apsw.Connection) -> None:
        """Forget the vectors of texts that are gone, once all that are there have theirs."""
        if self.space.attach(connection) and not self.progress.missing:
            self.space.prune(connection)

    def stats(self, connection: apsw.Connection) -> VectorStats:
        """Return the counts of passages with and without a vector."""
        self._check_model(connection)
        self._count(connection)
        now = self.progress
        return VectorStats(
            embedder=self.embedder.name,
            model=self.embedder.model,
            ready=now.passages - now.missing,
            missing=now.missing,
            fault=now.fault,
        )

    def _missing_texts(self, connection: apsw.Connection) -> dict[bytes, str] | None:
        """Texts that have no vector, by what they are known by; passages whose text has one are given it at once.
        None when nothing is missing."""
        ready = self._check_model(connection)
        if monotonic() - self._counted > COUNT_SECONDS:
            self._count(connection)
        newest = "SELECT id FROM passages WHERE vector IS NULL ORDER BY id DESC LIMIT ?"
        rows = [row for (row,) in connection.execute(newest, (self.embedder.batch,))]
        texts = self._texts(connection, rows)
        by_digest = {text_digest(text): text for text in texts.values()}
        known = self.space.find_ids(connection, by_digest) if ready else {}
        with connection:
            for row in rows:
                vector = known.get(text_digest(texts[row])) if row in texts else 0
                if vector is not None:
                    connection.execute("UPDATE passages SET vector = ? WHERE id = ?", (vector, row))
        return {digest: text for digest, text in by_digest.items() if digest not in known} if rows else None

    def _texts(self, connection: apsw.Connection, rows: Sequence[int]) -> dict[int, str]:
        """Return the texts to embed; none for passages that cannot be found or have no text."""
        texts = PassageTextReader(self._index.repository)
        found = load_candidates(connection, rows).values()
        said = {
            one.id: "\n".join((*filter(None, (one.speaker_name,)), *texts.lines(one)))[:MAX_CHARACTERS]
            for one in found
        }
        return {row: text for row, text in said.items() if text.strip()}

    def _store(
        self, connection: apsw.Connection, made: Mapping[bytes, Vector | None], dimensions: int
    ) -> bool:
        """Keep what was made. A text whose vector has another length has none, and is not asked for again; False when
        the embedder as a whole answers with vectors of no use."""
        if not made:
            return True
        if not dimensions and all(vector is None for vector in made.values()):
            return False  # the embedder refused every text so far: nobody knows how long its vectors are
        try:
            self.space.check_length(connection, dimensions)
        except ValueError as error:
            self._failed(error)
            return False
        if not self.space.attach(connection):
            self.space.create(connection, dimensions)
        wrong = [
            digest for digest, vector in made.items() if vector is not None and len(vector) != dimensions
        ]
        if wrong:
            _log.warning(
                "the embedder %s answers %d texts with vectors of another length than %d; words alone find them",
                self.embedder.name,
                len(wrong),
                dimensions,
            )
        with connection:
            for digest, vector in made.items():
                self.space.put(connection, digest, None if digest in wrong else vector)
        return True

    def _check_model(self, connection: apsw.Connection) -> bool:
        """Report whether there are vectors of this model. Without, none of them counts."""
        ready = self.space.attach(connection)
        if not ready:  # lost, or those of another model
            connection.execute("UPDATE passages SET vector = NULL WHERE vector > 0")
        return ready

    def _count(self, connection: apsw.Connection) -> None:
        missing = connection.execute("SELECT count(*) FROM passages WHERE vector IS NULL").get
        passages = connection.execute("SELECT count(*) FROM passages").get
        self.progress = msgspec.structs.replace(self.progress, passages=passages, missing=missing)
        self._counted = monotonic()

    def _failed(self, error: Exception) -> None:
        fault = f"{type(error).__name__}: {error}"
        if fault != self.progress.fault:
            _log.warning("the embedder %s fails; search uses words only: %s", self.embedder.name, fault)
        self.progress = msgspec.structs.replace(self.progress, fault=fault)
