"""The interface of the two protocols: a path, a body, and a reader of events. No I/O in here."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, TypeVar

import msgspec

from trunkline import ToolCall
from trunkline.api.model import (
    Call,
    CallIds,
    Finish,
    ModelEvent,
    ModelRequest,
    ReasoningDone,
    Usage,
    is_complete,
    model_error,
)
from trunkline_openai.settings import OpenAISettings

T = TypeVar("T")


class AnswerReader(ABC):
    """Reads the events of one answer. ``key`` is taken out of every text that an error would carry."""

    def __init__(self, request: ModelRequest, model: str, settings: OpenAISettings, key: str) -> None:
        self._ids = CallIds(request)
        self._requested = model
        self._model = model
        self._settings = settings
        self._key = key
        self._seen = False
        self._reason: str | None = None
        self._usage = Usage()

    def feed(self, event: str) -> Iterator[ModelEvent]:
        """Yield the model events of one event of the vendor.

        Raises:
            ModelError: the event reports a failure.
            msgspec.ValidationError: it does not have the shape it must have.
            ValueError: it is no JSON.
        """
        self._seen = True
        return self._read(event)

    def finish(self) -> Iterator[ModelEvent]:
        """The calls and the finish, at the end of the stream.

        Raises:
            ModelError: the stream ended before the answer did.
        """
        if self._reason is None:
            raise model_error(
                "interrupted" if self._seen else "bad_response",
                "the stream ended before the answer did" if self._seen else "the stream holds no event",
            )
        yield from self._blocks()
        calls = self._calls()
        if self._reason in ("max_tokens", "content_filter"):
            calls = [call for call in calls if is_complete(call)]  # a call that was cut off must not be run
        elif calls:
            self._reason = "tool_calls"  # some servers say stop
        yield from (Call(call) for call in calls)
        yield Finish(reason=self._reason, usage=self._usage, model=self._model)

    @abstractmethod
    def _read(self, event: str) -> Iterator[ModelEvent]: ...

    @abstractmethod
    def _calls(self) -> list[ToolCall]: ...

    def _blocks(self) -> Iterator[ReasoningDone]:
        """The reasoning that is complete only at the end of the answer."""
        yield from ()


class ApiProtocol(ABC):
    """A protocol of OpenAI: Chat Completions or Responses."""

    path: ClassVar[str]
    reader: ClassVar[type[AnswerReader]]

    @staticmethod
    @abstractmethod
    def body(request: ModelRequest, model: str, settings: OpenAISettings) -> dict[str, Any]:
        """The request as this protocol puts it, without ``extra_body``."""


def given_parameters(request: ModelRequest, settings: OpenAISettings) -> dict[str, Any]:
    """The parameters of a request: those of the section, overridden by the request's own."""
    return {**settings.parameters, **request.parameters}


def decode_event(event: str, decoder: msgspec.json.Decoder[T]) -> T:
    """An event by its type. Half characters (lone surrogates), which msgspec refuses, are sent by some servers."""
    try:
        return decoder.decode(event)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(event), decoder.type)
