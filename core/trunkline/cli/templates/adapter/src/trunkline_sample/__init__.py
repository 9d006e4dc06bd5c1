"""The sample adapter: a model that repeats the question. Call your vendor in its place."""

from collections.abc import AsyncIterator, Iterable

import trunkline
from trunkline.api.model import Finish, ModelAdapter, ModelEvent, ModelRequest, Text


class SampleAdapter(ModelAdapter):
    """Answers with the question."""

    name = "sample"
    vendor = "sample"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the answer, in pieces."""
        for word in request.messages[-1].content.split(" "):
            yield Text(word if word.endswith(".") else f"{word} ")
        yield Finish()


@trunkline.hookimpl
def trunkline_models() -> Iterable[ModelAdapter]:
    """Return the adapters of this plugin."""
    return [SampleAdapter()]
