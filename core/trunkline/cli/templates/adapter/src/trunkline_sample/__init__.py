"""The sample adapter: a model that repeats. Ask your vendor in its place."""

from collections.abc import AsyncIterator, Iterable

import trunkline


class SampleAdapter(trunkline.ModelAdapter):
    """Says the question again."""

    name = "sample"
    vendor = "sample"

    async def stream(self, request: trunkline.ModelRequest) -> AsyncIterator[trunkline.ModelEvent]:
        """The answer, in pieces."""
        for word in request.messages[-1].content.split(" "):
            yield trunkline.Text(word if word.endswith(".") else f"{word} ")
        yield trunkline.Finish()


@trunkline.hookimpl
def trunkline_models() -> Iterable[trunkline.ModelAdapter]:
    """What this plugin adds."""
    return [SampleAdapter()]
