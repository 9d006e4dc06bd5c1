"""Middleware around calls: placeholders leave in place of secrets, and come back as what they stand for."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

from msgspec.structs import replace

from trunkline import ErrorCode, ToolCall
from trunkline.api.model import (
    AskModel,
    Call,
    ModelError,
    ModelEvent,
    ModelRequest,
    Reasoning,
    Text,
    ToolRan,
)
from trunkline_redaction.placeholders import Placeholders, RestoringStream
from trunkline_redaction.process_redactor import ProcessRedactor
from trunkline_redaction.settings import RedactionSettings


class RedactionMiddleware:
    """Redacts the requests of whole calls, so that retries, fallbacks, repairs and traces of the call have placeholders
    only.
    """

    def __init__(self, settings: RedactionSettings, redactor: ProcessRedactor) -> None:
        self._settings = settings
        self._redactor = redactor

    async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        """Yield the events of the answer with the placeholders put back. Raise ModelError for files, which cannot be
        redacted, unless the settings permit them.
        """
        if not self._settings.files and any(
            message.images or message.documents for message in request.messages
        ):
            raise ModelError(
                ErrorCode.PROVIDER_ERROR,
                "refused",
                "redaction is on and cannot look into images and documents: set files = true in [plugins.redaction]",
            )
        redacted, placeholders = self._redactor.redact(request)
        restoring = _RestoredAnswer(placeholders)
        async with aclosing(proceed(redacted)) as events:  # type: ignore[type-var]
            async for event in events:
                for restored in restoring.feed(event):
                    yield restored


class _RestoredAnswer:
    """Puts back the placeholders of one answer. Blocks of reasoning stay as they are: the vendor has them back."""

    def __init__(self, placeholders: Placeholders) -> None:
        self._placeholders = placeholders
        self._text = RestoringStream(placeholders)
        self._reasoning = RestoringStream(placeholders)

    def feed(self, event: ModelEvent) -> Iterator[ModelEvent]:
        if not self._placeholders:
            yield event
            return
        match event:
            case Text(piece):
                yield from self._rest_of_reasoning()
                yield from _some(Text, self._text.feed(piece))
            case Reasoning(piece):
                yield from self._rest_of_text()
                yield from _some(Reasoning, self._reasoning.feed(piece))
            case _:
                yield from self._rest_of_reasoning()
                yield from self._rest_of_text()
                yield self._restored(event)

    def _rest_of_text(self) -> Iterator[ModelEvent]:
        yield from _some(Text, self._text.finish())

    def _rest_of_reasoning(self) -> Iterator[ModelEvent]:
        yield from _some(Reasoning, self._reasoning.finish())

    def _restored(self, event: ModelEvent) -> ModelEvent:
        match event:
            case Call(call):
                return Call(self._call(call))
            case ToolRan(call, output, error):
                return ToolRan(self._call(call), self._placeholders.restore(output), error)
            case _:
                return event

    def _call(self, call: ToolCall) -> ToolCall:
        return replace(call, arguments=self._placeholders.restore_all(call.arguments))


def _some(kind: type[Text] | type[Reasoning], text: str) -> Iterator[ModelEvent]:
    if text:
        yield kind(text)
