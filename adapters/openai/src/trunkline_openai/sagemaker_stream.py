"""The parts of a streamed answer of SageMaker as events of Chat Completions. No I/O."""

import json
from collections.abc import Iterator
from typing import Any

from trunkline.api.model import ModelError, model_error
from trunkline_openai.errors import from_status

DONE = "[DONE]"


class PayloadReader:
    """Reads the frames of an answer (``application/vnd.amazon.eventstream``). A frame may end within an event."""

    def __init__(self, key: str) -> None:
        from botocore.eventstream import EventStreamBuffer

        self._frames = EventStreamBuffer()
        self._key = key
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield the events that are complete, as JSON text.

        Raises:
            ModelError: a frame reports a failure, or is broken.
        """
        from botocore.eventstream import ParserError

        self._frames.add_data(data)
        try:
            for frame in self._frames:
                answer = frame.to_response_dict()
                if answer["headers"].get(":message-type") != "event":
                    raise _from_frame(answer, self._key)
                yield from self._lines(answer["body"])
        except ParserError as error:
            raise model_error("bad_response", f"a frame cannot be read: {error}") from None

    def finish(self) -> Iterator[str]:
        """Yield the last event, which may have no end of line. Raise ModelError if it is half of one."""
        for event in self._lines(b"\n"):
            if not is_json(event):
                raise model_error("interrupted", "the stream ended within an event")
            yield event

    def _lines(self, data: bytes) -> Iterator[str]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace").strip()
            event = text.removeprefix("data:").strip() if text.startswith("data:") else text
            if event and event != DONE and (event is not text or event.startswith("{")):
                yield event


def from_answer(status: int, body: bytes, key: str) -> ModelError:
    """Return the error of an answer that is no stream. The container's own error is in ``OriginalMessage``."""
    try:
        told: Any = json.loads(body)
    except ValueError:
        return from_status(status, body.decode(errors="replace")[:200], key)
    if not isinstance(told, dict):
        return from_status(status, told, key)
    original = told.get("OriginalStatusCode")
    if isinstance(original, int) and original >= 400:
        return from_status(original, _container_error(str(told.get("OriginalMessage", ""))), key)
    message = told.get("message") or told.get("Message") or told
    if "could not be found" in str(message) or "not found" in str(message):
        return model_error(
            "refused", f"HTTP {status}: {message}; name an endpoint that exists in this region"
        )
    return from_status(status, {"message": message, "code": told.get("__type", "")}, key)


def _from_frame(answer: dict[str, Any], key: str) -> ModelError:
    headers = answer["headers"]
    kind = headers.get(":exception-type") or headers.get(":error-code") or "error"
    try:
        told = json.loads(answer["body"])
    except ValueError:
        told = {}
    message = str(told.get("Message") or told.get("message") or headers.get(":error-message", ""))
    code = str(told.get("ErrorCode", ""))
    fault = from_status(500, {"message": message, "code": code}, key)
    if fault.fault == "unavailable":  # the stream had begun
        return model_error("interrupted", f"{kind} {code}: {message}".replace(key, "[key]"))
    return fault


def _container_error(text: str) -> Any:
    """Return the container's error, which may be JSON within text."""
    return json.loads(text) if is_json(text) else text


def is_json(text: str) -> bool:
    """Report whether a text is one JSON value."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
