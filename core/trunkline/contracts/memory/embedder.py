"""Embedder: turns texts into vectors, so that a search finds passages by meaning and not only by words."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

Vector = Sequence[float]


class Embedder(ABC):
    """Turns texts into vectors. Texts with similar meaning have vectors with a high cosine similarity.

    The memory worker calls the embedder in the background, in batches, and once for each search. The texts are the
    contents of memory, so an embedder that calls a network service sends memory to that service: only the owner chooses
    the embedder.

    Guarantees: all vectors of a ``model`` have the same length and are comparable, also after a restart.

    Not guaranteed: that a text is embedded once, or that a batch has ``batch`` texts. A batch for the index and a
    search may call the embedder at the same time.
    """

    name: str
    """The name in ``[memory] embedder``."""

    model: str
    """The model that makes the vectors. When this name changes, all passages get new vectors."""

    batch: int = 64
    """The preferred number of texts in one call."""

    least: float = 0.25
    """The lowest cosine similarity at which a passage is found by its meaning alone. Passages below this value are
    merely the nearest ones.
    """

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return the vectors of the texts, in their order, all of the same length.

        The method must not block the event loop: run a local model in ``anyio.to_thread``. A text without meaning may
        have a vector of zeros; a search then does not find the text by meaning.

        Raises:
            Exception: the call failed. The memory worker repeats the call later; until then searches compare words
                only.
        """

    async def aclose(self) -> None:  # noqa: B027  most embedders hold nothing
        """Close the connections. Called once, when the worker drains. Raises nothing. An exception is reported as a
        failure of the worker.
        """
