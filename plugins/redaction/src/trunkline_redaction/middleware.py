"""Middleware around calls: placeholders leave in place of secrets, and come back as what they stand for."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from trunkline.api.model import AskModel, ModelEvent, ModelRequest
from trunkline_redaction.answer_restore import RestoredAnswer
from trunkline_redaction.process_redactor import ProcessRedactor


class RedactionMiddleware:
    """Redacts the requests of whole calls, so that retries, fallbacks, repairs and traces of the call have placeholders
    only. ``RequestRedaction`` redacts what is added to a request later.
    """

    def __init__(self, redactor: ProcessRedactor) -> None:
        self._redactor = redactor

    async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        """Yield the events of the answer with the placeholders put back."""
        redacted, placeholders = self._redactor.redact(request)
        restoring = RestoredAnswer(placeholders, in_json=request.response_format is not None)
        async with aclosing(proceed(redacted)) as events:  # type: ignore[type-var]
            async for event in events:
                for restored in restoring.feed(event):
                    yield restored
