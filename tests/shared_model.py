"""A model of a platform that tests share."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from trunkline.contracts.models.adapter import ModelEvent, ModelRequest
from trunkline.testing.scripted_model import ModelScript, ReplyItems, ScriptedModel


class SharedModel(ScriptedModel):
    """Answers by the script that the running test gave to ``begin``. ``requests`` are those since then."""

    def __init__(self) -> None:
        super().__init__()
        self.begin()

    def begin(
        self, script: ModelScript | Sequence[ReplyItems] | None = None, *, structured: bool = False
    ) -> None:
        """Begin anew, for the next test. With ``structured`` the vendor enforces formats."""
        self._current = ScriptedModel(script)
        self.requests = self._current.requests
        self.closed = 0
        self.structured = structured

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the reply of the script."""
        current = self._current
        try:
            async with aclosing(current.stream(request)) as events:  # type: ignore[type-var]
                async for event in events:
                    yield event
        finally:
            if current is self._current:
                self.closed = current.closed
