"""Middleware around requests: the last look at what a vendor receives, in every worker that asks models.

It redacts what never was in a call: the texts of vectors and speech, and attached files, which are read from memory
when the request is sent.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing

from msgspec.structs import replace

from trunkline import ErrorCode, Message
from trunkline.api.model import AskModel, ModelError, ModelEvent, ModelRequest
from trunkline_redaction.answer_restore import RestoredAnswer
from trunkline_redaction.key_source import KeySource
from trunkline_redaction.placeholders import Placeholders
from trunkline_redaction.process_redactor import ProcessRedactor
from trunkline_redaction.settings import RedactionSettings

LEFT_OUT = "[The files of this message are not sent, because redaction is on.]"
"""What the model reads in place of files of earlier turns."""

CURE = "leave them out, or set files = true in [plugins.redaction]"


class RequestRedaction:
    """Redacts each request. What ``RedactionMiddleware`` has redacted stays as it is."""

    each_request = True

    def __init__(self, settings: RedactionSettings, keys: KeySource, redactor: ProcessRedactor) -> None:
        self._settings = settings
        self._keys = keys
        self._redactor = redactor

    async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        """Yield the events of the redacted request. Placeholders are put back into answers; the replies of other
        operations have no text. Raise ModelError for files, which cannot be redacted, unless the settings permit them,
        and for vectors while the shared key of placeholders is not known.
        """
        redacted, placeholders = self._redactor.redact(self._admitted(request))
        if request.operation != "chat":
            placeholders = Placeholders(b"")
        restoring = RestoredAnswer(placeholders, in_json=request.response_format is not None)
        async with aclosing(proceed(redacted)) as events:  # type: ignore[type-var]
            async for event in events:
                for restored in restoring.feed(event):
                    yield restored

    def _admitted(self, request: ModelRequest) -> ModelRequest:
        """Return the request without files that may not be sent. Raises ModelError if it may not be sent at all."""
        if request.operation == "embeddings" and not self._keys.is_shared:
            # Vectors are kept. Those of other placeholders would not be found by the text that they were made of.
            why = "the key of placeholders is not read from the bus yet"
            raise ModelError(ErrorCode.ENGINE_UNAVAILABLE, "unavailable", why)
        if self._settings.files:
            return request
        if request.operation == "transcription":
            raise ModelError(
                ErrorCode.NOT_SENT, "refused", f"Redaction is on and cannot listen to recordings: {CURE}."
            )
        request = replace(
            request, messages=tuple(_without_old_files(one, request.turn) for one in request.messages)
        )
        if any(message.images or message.documents for message in request.messages):
            raise ModelError(
                ErrorCode.NOT_SENT,
                "refused",
                f"Redaction is on and cannot look into images and documents: {CURE}.",
            )
        return request


def _without_old_files(message: Message, turn: str) -> Message:
    """Return a message of an earlier turn without its files: that turn was refused, or was before redaction was on, and
    the conversation goes on.
    """
    if not (message.images or message.documents) or message.turn in (None, turn):
        return message
    content = "\n\n".join(filter(None, (message.content, LEFT_OUT)))
    return replace(message, content=content, images=(), documents=())
