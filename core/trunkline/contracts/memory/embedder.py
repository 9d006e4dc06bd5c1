"""Embedders: texts as vectors, so that search finds what is meant and not only what is written."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

Vector = Sequence[float]


class Embedder(ABC):
    """Something that turns texts into vectors: texts that mean alike lie close to each other (by cosine).

    The memory worker asks it in the background, in batches, and once for each search. What it is given is on its way
    to be searched, so an embedder that asks a service over the network sends it memory: only the owner chooses one.
    """

    name: str
    """The name in ``[memory] embedder``."""

    model: str
    """Which model's vectors these are. When it changes, everything is embedded anew."""

    batch: int = 64
    """How many texts it likes to be given at once."""

    least: float = 0.25
    """How alike (cosine) a passage must be to be found by its meaning alone. Below is what happens to be nearest."""

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """The vectors of some texts, in their order, all of the same length.

        Must not block the event loop: a model that computes here belongs into ``anyio.to_thread``. A text that says
        nothing may have a vector of zeros; it is then not found by its meaning.

        Raises:
            Exception: whatever went wrong. The texts are asked for again later; searches go on with words alone.
        """

    async def aclose(self) -> None:  # noqa: B027  most embedders hold nothing
        """Let go of connections. Called once, when the worker drains."""
