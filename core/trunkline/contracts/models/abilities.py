"""The abilities of models besides answers: vectors of texts, transcripts of audio, spoken text. Types only."""

from typing import Annotated, Final, Literal

import msgspec

from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.models.media_usage import MediaUsage

Purpose = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
"""The purpose of a model call, by which models are chosen and costs are grouped: ``turn``, ``route``, ``summary``,
``embed``, ``repl``, …."""

EMBED: Final = "embed"
TRANSCRIBE: Final = "transcribe"
SPEAK: Final = "speak"
"""The purposes of calls for vectors, transcripts and speech."""

SpeechFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]

SPEECH_TYPES: dict[SpeechFormat, str] = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
"""The media type of each format. ``opus`` is Opus in an Ogg file; ``pcm`` are samples of 16 bits, little-endian, mono,
24 000 each second.
"""

Dimensions = Annotated[int, msgspec.Meta(ge=1, le=65_536)]
Speed = Annotated[float, msgspec.Meta(ge=0.25, le=4.0)]


class Audio(msgspec.Struct, frozen=True, kw_only=True):
    """A recording. ``media_type`` is that of the file, such as ``audio/ogg``; ``data`` is the file's bytes."""

    media_type: str
    data: bytes


class Embeddings(msgspec.Struct, frozen=True, kw_only=True):
    """The vectors of texts, in the order of the texts. All have the same length.

    ``usage`` is what the vendor counted, ``model`` the vendor's name of the model that answered, "" if it does not say.
    """

    vectors: tuple[tuple[float, ...], ...]
    usage: Usage = Usage()
    model: str = ""


class TranscriptionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the text of a recording.

    ``model`` is the vendor's name of the model, "" for the adapter's default. ``language`` is the language that is
    spoken, as a code of ISO 639-1, "" if unknown. ``prompt`` is a text with names and words that occur. With
    ``translate`` the text is English, whatever is spoken. With ``segments`` the parts of the text have times, if the
    model offers that.
    """

    audio: Audio
    model: str = ""
    language: str = ""
    prompt: str = ""
    translate: bool = False
    segments: bool = False


class TranscriptSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a transcript. ``start`` and ``end`` are in seconds from the beginning of the recording. ``speaker`` is
    the vendor's label of the person who speaks, "" if it does not say.
    """

    start: float
    end: float
    text: str
    speaker: str = ""


class Transcription(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a recording.

    ``language`` is the language as the vendor names it and ``seconds`` the length of the recording; "" and 0 if the
    vendor does not say. ``segments`` are empty if the model offers none. ``usage`` and ``media`` are what the vendor
    bills.
    """

    text: str
    language: str = ""
    seconds: float = 0.0
    segments: tuple[TranscriptSegment, ...] = ()
    usage: Usage = Usage()
    media: MediaUsage = MediaUsage()
    model: str = ""


class SpeechRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to speak a text.

    ``model`` and ``voice`` are the vendor's names, "" for the adapter's defaults. ``format`` is None for the adapter's
    first format. ``instructions`` say how to speak, for models that take them. ``speed`` is 1 for the normal speed.
    """

    text: str
    model: str = ""
    voice: str = ""
    format: SpeechFormat | None = None
    instructions: str = ""
    speed: Speed | None = None


class SpeechAudio(msgspec.Struct, frozen=True):
    """A part of the audio file."""

    data: bytes


class SpeechFinish(msgspec.Struct, frozen=True, kw_only=True):
    """The audio is complete. ``format`` is its format. ``usage`` and ``media`` are what the vendor bills."""

    format: SpeechFormat
    usage: Usage = Usage()
    media: MediaUsage = MediaUsage()
    model: str = ""


SpeechEvent = SpeechAudio | SpeechFinish
