"""Middleware around requests for vectors, transcripts and speech: placeholders leave in place of secrets.

Nothing is put back: vectors and audio have no text, and a transcript is what the vendor heard, not what was sent.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing

from trunkline import ErrorCode
from trunkline.api.model import AskModel, ModelError, ModelEvent, ModelRequest
from trunkline_redaction.key_source import KeySource
from trunkline_redaction.process_redactor import ProcessRedactor
from trunkline_redaction.settings import RedactionSettings


class AbilityRedaction:
    """Redacts each request that is not ``chat``, in every worker. ``RedactionMiddleware`` has redacted the others."""

    each_request = True

    def __init__(self, settings: RedactionSettings, keys: KeySource, redactor: ProcessRedactor) -> None:
        self._settings = settings
        self._keys = keys
        self._redactor = redactor

    async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        """Yield the events of the redacted request. Raise ModelError for a recording, which cannot be redacted, unless
        the settings permit files, and for vectors while the shared key of placeholders is not known.
        """
        if request.operation == "transcription" and not self._settings.files:
            raise ModelError(
                ErrorCode.PROVIDER_ERROR,
                "refused",
                "redaction is on and cannot listen to recordings: set files = true in [plugins.redaction]",
            )
        if request.operation == "embeddings" and not self._keys.is_shared:
            # Vectors are kept. Those of other placeholders would not be found by the text that they were made of.
            raise ModelError(
                ErrorCode.PROVIDER_ERROR,
                "unavailable",
                "the key of placeholders is not read from the bus yet",
            )
        if request.operation != "chat":
            request, _ = self._redactor.redact(request)
        async with aclosing(proceed(request)) as events:  # type: ignore[type-var]
            async for event in events:
                yield event
