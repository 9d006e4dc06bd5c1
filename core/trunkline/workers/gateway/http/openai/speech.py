"""OpenAI's speech over the abilities of a block's model. The audio is sent as it arrives."""

import base64
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import anyio
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.models.abilities import (
    SPEECH_TYPES,
    SpeechAudio,
    SpeechEvent,
    SpeechFinish,
    SpeechFormat,
    SpeechRequest,
)
from trunkline.errors import CompletionError, ErrorCode
from trunkline.workers.gateway.http.app_state import app_state_of
from trunkline.workers.gateway.http.client_watch import cancel_when_gone
from trunkline.workers.gateway.http.openai.ability_requests import block_abilities, failed_ability
from trunkline.workers.gateway.http.openai.ability_schemas import (
    SpeechDelta,
    SpeechDone,
    SpeechIn,
    TokenUsageOut,
    VoiceId,
)
from trunkline.workers.gateway.http.openai.schemas import error_object
from trunkline.workers.gateway.http.request_reader import read_json
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline.workers.gateway.http.sse import EventStream, encode

DEFAULT_FORMAT: SpeechFormat = "mp3"
"""OpenAI's format of audio if the client names none."""


async def create_speech(request: Request) -> ASGIApp:
    """``POST /v1/audio/speech``"""
    asked = await read_json(request, SpeechIn)
    abilities, model = await block_abilities(request, asked.model, asked.input)
    format = asked.response_format or DEFAULT_FORMAT
    speech = SpeechRequest(
        text=asked.input,
        model=model,
        voice=asked.voice.id if isinstance(asked.voice, VoiceId) else asked.voice,
        format=format,
        instructions=asked.instructions,
        speed=asked.speed,
    )
    events = abilities.speak(speech)
    try:
        first = await anext(events)
    except CompletionError as error:
        return failed_ability(request, error)
    closing, headers = app_state_of(request).closing, {"cache-control": "no-store"}
    whole = _from_first(first, events)
    if asked.stream_format == "sse":
        return EventStream(_sse(whole), closing=closing, headers=headers)
    return AudioResponse(whole, SPEECH_TYPES[format], closing)


ROUTES = (ScopedRoute("/v1/audio/speech", create_speech, methods=["POST"], scope=TokenScope.CHAT),)


class AudioResponse:
    """A response with audio of unknown length. If the audio breaks off, so does the response: its client must not take
    half of the audio for the whole."""

    def __init__(
        self, events: AsyncGenerator[SpeechEvent, None], media_type: str, closing: anyio.Event
    ) -> None:
        self._events = events
        self._media_type = media_type
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the audio. The call to the model ends when the client disconnects or the server stops."""
        headers = [(b"content-type", self._media_type.encode()), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        complete = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_when_gone, receive, tasks.cancel_scope)
            tasks.start_soon(_cancel_when_set, self._closing, tasks.cancel_scope)
            complete = await self._send_all(send)
            tasks.cancel_scope.cancel()
        if complete:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_all(self, send: Send) -> bool:
        """Send the parts, and report whether they are complete."""
        async with aclosing(self._events) as events:
            try:
                async for event in events:
                    if isinstance(event, SpeechFinish):
                        return True
                    await send({"type": "http.response.body", "body": event.data, "more_body": True})
            except CompletionError:
                return False
        return False


async def _cancel_when_set(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _from_first(
    first: SpeechEvent, others: AsyncIterator[SpeechEvent]
) -> AsyncGenerator[SpeechEvent, None]:
    async with aclosing(others):  # type: ignore[type-var]
        yield first
        async for event in others:
            yield event


async def _sse(speech: AsyncGenerator[SpeechEvent, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(speech) as events:
        try:
            async for event in events:
                yield encode(_event(event))
        except CompletionError:
            yield encode(error_object(ErrorCode.PROVIDER_ERROR), event="error")


def _event(event: SpeechEvent) -> SpeechDelta | SpeechDone:
    if isinstance(event, SpeechAudio):
        return SpeechDelta(type="speech.audio.delta", audio=base64.b64encode(event.data).decode())
    given, made = event.usage.input_tokens, event.usage.output_tokens
    usage = TokenUsageOut(type="tokens", input_tokens=given, output_tokens=made, total_tokens=given + made)
    return SpeechDone(type="speech.audio.done", usage=usage)
