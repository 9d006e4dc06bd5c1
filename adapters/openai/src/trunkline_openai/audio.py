"""Requests for transcripts and speech, and their answers. No I/O in here."""

import base64
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from trunkline.api.model import (
    MediaUsage,
    SpeechAudio,
    SpeechEvent,
    SpeechFinish,
    SpeechFormat,
    SpeechRequest,
    Transcription,
    TranscriptionRequest,
    TranscriptSegment,
    Usage,
    model_error,
)
from trunkline_openai.vendors import OPENAI, Vendor

FILE_ENDINGS: Mapping[str, str] = {
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/m4a": "m4a",
    "audio/mp3": "mp3",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/opus": "ogg",
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/webm": "webm",
    "audio/x-flac": "flac",
    "audio/x-m4a": "m4a",
    "audio/x-wav": "wav",
    "video/mp4": "mp4",
    "video/webm": "webm",
}
"""The ending of the file of each type of audio. Servers recognise a recording by the ending of its file."""

PLAIN_SPEECH_MODELS = ("tts-1*",)
"""Models of OpenAI that cannot send audio as events, and take no instructions. They are sent none."""


class _AudioUsage(msgspec.Struct):
    """The counted tokens or seconds. Mistral has seconds in a field of its own."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float | None = None
    prompt_audio_seconds: float | None = None


class _TimedText(msgspec.Struct):
    start: float
    end: float
    text: str = ""
    speaker: str | None = None
    speaker_id: str | None = None


class _SpokenLanguage(msgspec.Struct):
    code: str | None = None
    language: str | None = None


class AudioText(msgspec.Struct):
    """An answer with the text of a recording."""

    text: str
    language: str | None = None
    languages: list[_SpokenLanguage | str] | None = None
    duration: float | None = None
    segments: list[_TimedText] | None = None
    usage: _AudioUsage | None = None
    model: str | None = None


class _SpeechChunk(msgspec.Struct):
    type: str = ""
    audio: str = ""
    usage: _AudioUsage | None = None
    error: Any = None


def file_of(request: TranscriptionRequest) -> tuple[str, bytes, str]:
    """Return the file of a request: its name, bytes and type.

    Raises:
        ModelError: the type of audio is unknown.
    """
    media_type = request.audio.media_type.partition(";")[0].strip().lower()
    ending = FILE_ENDINGS.get(media_type)
    if ending is None:
        raise model_error("refused", f"no server is known to read {media_type or 'audio without a type'}")
    return f"recording.{ending}", request.audio.data, media_type


def transcription_model(request: TranscriptionRequest, vendor: Vendor) -> str:
    """Return the model for a recording: the one that the request names, else the vendor's for what it asks.

    Raises:
        ModelError: the request names none, and the vendor has no default.
    """
    special = vendor.whisper_model if request.translate or request.segments else ""
    if model := request.model or special or vendor.transcription_model:
        return model
    raise model_error("refused", f"name a model for transcripts, as {vendor.name}/MODEL")


def transcription_fields(request: TranscriptionRequest, model: str, vendor: Vendor) -> dict[str, Any]:
    """Return the fields besides the file."""
    fields: dict[str, Any] = {"model": model, "response_format": _answer_form(model)}
    if "diarize" in model:
        fields["chunking_strategy"] = "auto"
    elif request.prompt:
        fields["prompt"] = request.prompt
    if vendor.name == "mistral":
        del fields["response_format"]
        if request.segments:
            fields["timestamp_granularities[]"] = "segment"
    if request.language and not request.translate:
        fields["language"] = request.language
    return fields


def read_transcription(answer: AudioText, model: str) -> Transcription:
    """Return the text with what the server tells of it."""
    usage = answer.usage or _AudioUsage()
    seconds = answer.duration or usage.seconds or usage.prompt_audio_seconds or 0.0
    counted = Usage(
        input_tokens=usage.input_tokens or usage.prompt_tokens or 0,
        output_tokens=usage.output_tokens or usage.completion_tokens or 0,
    )
    return Transcription(
        text=answer.text,
        language=_language(answer),
        seconds=seconds,
        segments=tuple(map(_segment, answer.segments or ())),
        usage=counted,
        media=MediaUsage(seconds=seconds),
        model=answer.model or model,
    )


def speech_model(request: SpeechRequest, vendor: Vendor) -> str:
    """Return the model for speech. Raises ModelError if neither the request nor the vendor names one."""
    if model := request.model or vendor.speech_model:
        return model
    raise model_error("refused", f"name a model for speech, as {vendor.name}/MODEL")


def speech_format(request: SpeechRequest, vendor: Vendor) -> SpeechFormat:
    """Return the format of the audio. Raises ModelError if the vendor does not offer it."""
    wanted = request.format or vendor.speech_formats[0]
    if wanted not in vendor.speech_formats:
        raise model_error("refused", f"the formats of speech are {', '.join(vendor.speech_formats)}")
    return wanted


def speech_body(request: SpeechRequest, model: str, format: SpeechFormat, vendor: Vendor) -> dict[str, Any]:
    """Return the body of a request for speech."""
    body: dict[str, Any] = {"model": model, "input": request.text, "response_format": format}
    body["voice"] = request.voice or vendor.voice
    if request.instructions and not _is_plain(model):
        body["instructions"] = request.instructions
    if request.speed is not None:
        body["speed"] = request.speed
    return body


def sends_events(model: str, vendor: Vendor) -> bool:
    """Report whether the audio can be sent as events, whose last one has the tokens."""
    return vendor is OPENAI and not _is_plain(model)


def check_audio_type(content_type: str) -> None:
    """Raise ModelError if an answer is a page or a JSON document in place of audio."""
    if content_type.startswith(("text/", "application/json")):
        raise model_error("bad_response", f"the answer is {content_type} and no audio")


class SpeechReader:
    """Reads the audio of one speech."""

    def __init__(self, request: SpeechRequest, model: str, format: SpeechFormat) -> None:
        self._media = MediaUsage(characters=len(request.text))
        self._model = model
        self._format: SpeechFormat = format
        self._usage = Usage()
        self._ended = False
        self._begun = False

    def take(self, data: bytes) -> SpeechAudio:
        """Return bytes of audio that are not in an event."""
        self._begun = self._ended = True
        return SpeechAudio(data)

    def feed(self, event: str) -> SpeechEvent | None:
        """Return the audio of an event, None if it has none. Raises msgspec.MsgspecError or ValueError if it cannot
        be read."""
        chunk = msgspec.json.decode(event, type=_SpeechChunk)
        if chunk.error:
            raise model_error("interrupted", f"the server reports an error: {chunk.error}")
        if chunk.type == "speech.audio.done":
            self._ended = True
            counted = chunk.usage or _AudioUsage()
            self._usage = Usage(
                input_tokens=counted.input_tokens or 0, output_tokens=counted.output_tokens or 0
            )
        if not chunk.audio:
            return None
        self._begun = True
        return SpeechAudio(base64.b64decode(chunk.audio, validate=True))

    def finish(self) -> SpeechFinish:
        """Return the end. Raises ModelError if there was no audio, or events ended before the last one."""
        if not self._begun:
            raise model_error("bad_response", "the answer has no audio")
        if not self._ended:
            raise model_error("interrupted", "the audio ended before its last event")
        return SpeechFinish(format=self._format, usage=self._usage, media=self._media, model=self._model)


def _is_plain(model: str) -> bool:
    return any(fnmatchcase(model, pattern) for pattern in PLAIN_SPEECH_MODELS)


def _answer_form(model: str) -> str:
    if "diarize" in model:
        return "diarized_json"
    return "verbose_json" if "whisper" in model.lower() else "json"


def _language(answer: AudioText) -> str:
    for one in answer.languages or ():
        if name := one if isinstance(one, str) else one.code or one.language:
            return name
    return answer.language or ""


def _segment(segment: _TimedText) -> TranscriptSegment:
    speaker = segment.speaker or segment.speaker_id or ""
    return TranscriptSegment(start=segment.start, end=segment.end, text=segment.text.strip(), speaker=speaker)
