"""The sample adapter: a model that repeats. Ask your vendor in its place."""

from collections.abc import AsyncIterator, Iterable

import trunkline
from trunkline.api.model import Finish, ModelAdapter, ModelEvent, ModelRequest, Text


class SampleAdapter(ModelAdapter):
    """Says the question again."""

    name = "sample"
    vendor = "sample"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The answer, in pieces."""
        for word in request.messages[-1].content.split(" "):
            yield Text(word if word.endswith(".") else f"{word} ")
        yield Finish()


@trunkline.hookimpl
def trunkline_models() -> Iterable[ModelAdapter]:
    """What this plugin adds."""
    return [SampleAdapter()]
