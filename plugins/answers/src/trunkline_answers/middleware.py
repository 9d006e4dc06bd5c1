"""Model middleware: reasoning leaves the text of an answer, and an answer without any content is a failure."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

from trunkline import ErrorCode
from trunkline.api.model import (
    AskModel,
    Finish,
    ModelError,
    ModelEvent,
    ModelRequest,
    ModelStatus,
    Reasoning,
    ReasoningDone,
    Text,
)
from trunkline_answers.reasoning_markers import ReasoningTags


class AnswerMiddleware:
    """Checks the answer to each request, so that middleware around calls may repeat a request without an answer."""

    each_request = True

    async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        """Yield the events of the answer. Raise ModelError ``bad_response`` for an answer without text, reasoning and
        calls that ended by itself (MN-F11)."""
        answer = _CheckedAnswer(request)
        async with aclosing(proceed(request)) as events:  # type: ignore[type-var]
            async for event in events:
                for checked in answer.feed(event):
                    yield checked


class _CheckedAnswer:
    """One answer. White space is held back until something follows it, so that nothing of an empty answer is seen. The
    rest of a continued answer, and a reply that is no text, are passed on as they are.
    """

    def __init__(self, request: ModelRequest) -> None:
        whole = not request.partial and request.operation == "chat"
        self._tags = ReasoningTags() if whole else None
        self._blank = ""
        self._empty = whole

    def feed(self, event: ModelEvent) -> Iterator[ModelEvent]:
        match event:
            case Text(piece):
                yield from self._said(self._tags.feed(piece) if self._tags is not None else (event,))
            case ModelStatus():
                yield event
            case Finish():
                yield from self._rest()
                if self._empty and event.reason == "stop":
                    raise ModelError(ErrorCode.PROVIDER_ERROR, "bad_response", "the answer is empty")
                yield event
            case Reasoning(text) if not text:
                return
            case _:
                if not isinstance(event, Reasoning | ReasoningDone):
                    yield from self._rest()
                self._empty = False
                yield event

    def _rest(self) -> Iterator[ModelEvent]:
        if self._tags is not None:
            yield from self._said(self._tags.finish())
            self._tags = None

    def _said(self, events: Iterator[Text | Reasoning] | tuple[Text]) -> Iterator[ModelEvent]:
        for event in events:
            if isinstance(event, Text) and self._empty and not event.text.strip():
                self._blank += event.text
                continue
            if isinstance(event, Text) and self._blank:
                event = Text(self._blank + event.text)
                self._blank = ""
            self._empty = False
            yield event
