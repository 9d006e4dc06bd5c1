"""OpenAI's transcriptions and translations of audio over the abilities of a block's model."""

from collections.abc import AsyncGenerator, AsyncIterator

import msgspec
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.models.abilities import (
    Audio,
    Transcription,
    TranscriptionRequest,
    TranscriptSegment,
)
from trunkline.contracts.models.ability_messages import MAX_AUDIO_BYTES
from trunkline.errors import CompletionError
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import app_state_of
from trunkline.workers.gateway.http.multipart_reader import file_field, pieces_of, read_form, text_field
from trunkline.workers.gateway.http.openai.ability_requests import block_abilities, failed_ability
from trunkline.workers.gateway.http.openai.ability_schemas import (
    SegmentOut,
    TokenUsageOut,
    TranscriptDelta,
    TranscriptDone,
    TranscriptionForm,
    TranscriptOut,
    VerboseTranscriptOut,
)
from trunkline.workers.gateway.http.openai.audio_type import sniff_audio_type
from trunkline.workers.gateway.http.request_reader import invalid_field
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline.workers.gateway.http.sse import EventStream, encode

FIELDS = tuple(name for name in TranscriptionForm.__struct_fields__ if name != "file")
REFUSED = ("include[]", "known_speaker_names[]", "known_speaker_references[]", "keywords[]", "languages[]")
"""Fields that are not supported."""

TIMED = ("srt", "vtt", "verbose_json", "diarized_json")
"""The forms of an answer that have times."""

UNKNOWN_AUDIO = "It is no audio file in a known format: flac, mp3, mp4, m4a, ogg, wav, webm or aac."
NO_TIMES = "The model gives no times. Choose json or text, or a model that does, such as whisper-1."
NO_SPEAKERS = "The model does not tell the speakers. Choose another form, or a model that does."

HEAD_BYTES = 64


async def create_transcription(request: Request) -> ASGIApp:
    """``POST /v1/audio/transcriptions``"""
    return await _answer(request, translate=False)


async def create_translation(request: Request) -> ASGIApp:
    """``POST /v1/audio/translations``"""
    return await _answer(request, translate=True)


ROUTES = (
    ScopedRoute("/v1/audio/transcriptions", create_transcription, methods=["POST"], scope=TokenScope.CHAT),
    ScopedRoute("/v1/audio/translations", create_translation, methods=["POST"], scope=TokenScope.CHAT),
)


async def _answer(request: Request, *, translate: bool) -> ASGIApp:
    async with read_form(request, max_file=MAX_AUDIO_BYTES) as form:
        asked = _asked(form)
        file = file_field(form, "file", max_size=MAX_AUDIO_BYTES)
        media_type = await _media_type(file)
        abilities, model = await block_abilities(request, asked.model)
        wanted = TranscriptionRequest(
            audio=Audio(media_type=media_type, data=b""),
            model=model,
            language=asked.language,
            prompt=asked.prompt,
            translate=translate,
            segments=asked.response_format in TIMED,
        )
        try:
            said = await abilities.transcribe_file(wanted, lambda: _from_start(file))
        except CompletionError as error:
            return failed_ability(request, error)
    if asked.stream == "true":
        closing = app_state_of(request).closing
        return EventStream(_events(said), closing=closing, headers={})
    return _response(said, asked, "translate" if translate else "transcribe")


def _asked(form: FormData) -> TranscriptionForm:
    """Return the fields of the form. Raises InvalidField."""
    for name in REFUSED:
        if form.get(name) is not None:
            raise InvalidField((name,), "It is not supported. Leave it out.")
    for granularity in form.getlist("timestamp_granularities[]"):
        if granularity != "segment":
            raise InvalidField(("timestamp_granularities[]",), "Only segment is supported.")
    temperature = text_field(form, "temperature")
    if temperature not in (None, "", "0", "0.0"):
        raise InvalidField(("temperature",), "It is 0, or left out.")
    given = {name: value for name in FIELDS if (value := text_field(form, name)) is not None}
    try:
        return msgspec.convert({**given, "stream": given.get("stream", "false").lower()}, TranscriptionForm)
    except msgspec.ValidationError as error:
        raise invalid_field(str(error)) from error


async def _media_type(file: UploadFile) -> str:
    """Return the type of the recording by its first bytes. Raises InvalidField when it is no audio."""
    found = sniff_audio_type(await file.read(HEAD_BYTES))
    if found is None:
        raise InvalidField(("file",), UNKNOWN_AUDIO)
    return found


async def _from_start(file: UploadFile) -> AsyncIterator[bytes]:
    await file.seek(0)
    async for piece in pieces_of(file):
        yield piece


def _response(said: Transcription, asked: TranscriptionForm, task: str) -> Response:
    form = asked.response_format
    if form in ("srt", "vtt", "diarized_json") and not said.segments:
        raise InvalidField(("response_format",), NO_TIMES)
    if form == "diarized_json" and not any(segment.speaker for segment in said.segments):
        raise InvalidField(("response_format",), NO_SPEAKERS)
    if form == "json":
        return json_response(TranscriptOut(text=said.text, usage=_usage(said.usage)))
    if form in ("verbose_json", "diarized_json"):
        return json_response(_verbose(said, task))
    text = {"srt": srt_text, "vtt": vtt_text}[form](said.segments) if form != "text" else f"{said.text}\n"
    return PlainTextResponse(text, headers={"cache-control": "no-store"})


def _verbose(said: Transcription, task: str) -> VerboseTranscriptOut:
    segments = tuple(
        SegmentOut(id=number, start=one.start, end=one.end, text=one.text, speaker=one.speaker)
        for number, one in enumerate(said.segments)
    )
    ends = (segment.end for segment in said.segments)
    return VerboseTranscriptOut(
        task="translate" if task == "translate" else "transcribe",
        text=said.text,
        language=said.language,
        duration=said.seconds or max(ends, default=0.0),
        segments=segments,
        usage=_usage(said.usage),
    )


def _usage(usage: Usage) -> TokenUsageOut | None:
    """Return the counted tokens, None for a model that is billed by seconds."""
    given, made = usage.input_tokens, usage.output_tokens
    if not given and not made:
        return None
    return TokenUsageOut(type="tokens", input_tokens=given, output_tokens=made, total_tokens=given + made)


async def _events(said: Transcription) -> AsyncGenerator[bytes, None]:
    """Yield the transcript as events: the vendor's answer is complete, so its text is one delta."""
    delta = TranscriptDelta(type="transcript.text.delta", delta=said.text)
    done = TranscriptDone(type="transcript.text.done", text=said.text, usage=_usage(said.usage))
    for event in (delta, done):
        yield encode(event, event=event.type)
    yield encode("[DONE]")


def srt_text(segments: tuple[TranscriptSegment, ...]) -> str:
    """Return subtitles in the form of SubRip."""
    blocks = (
        f"{number}\n{_clock(one.start, ',')} --> {_clock(one.end, ',')}\n{_line(one)}\n"
        for number, one in enumerate(segments, start=1)
    )
    return "\n".join(blocks)


def vtt_text(segments: tuple[TranscriptSegment, ...]) -> str:
    """Return subtitles in the form of WebVTT."""
    blocks = (f"{_clock(one.start, '.')} --> {_clock(one.end, '.')}\n{_line(one)}\n" for one in segments)
    return "\n".join(("WEBVTT\n", *blocks))


def _line(segment: TranscriptSegment) -> str:
    """Return the text in one line, in which no arrow can be taken for times."""
    text = " ".join(segment.text.split()).replace("-->", "→")
    return f"{segment.speaker}: {text}" if segment.speaker else text


def _clock(seconds: float, point: str) -> str:
    whole = round(max(0.0, seconds) * 1000)
    minutes, milliseconds = divmod(whole, 60_000)
    hours, minutes = divmod(minutes, 60)
    second, milli = divmod(milliseconds, 1000)
    return f"{hours:02}:{minutes:02}:{second:02}{point}{milli:03}"
