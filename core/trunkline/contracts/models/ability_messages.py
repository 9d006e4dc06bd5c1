"""Requests for vectors, transcripts and speech, and their replies. A reply that may be large comes in parts."""

from typing import Annotated, Final

import msgspec

from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.models.abilities import (
    EMBED,
    SPEAK,
    TRANSCRIBE,
    Dimensions,
    Purpose,
    SpeechFormat,
    Speed,
    TranscriptSegment,
)
from trunkline.contracts.models.media_usage import MediaUsage
from trunkline.contracts.models.messages import MicroUSD
from trunkline_bus import Payload

MAX_TEXTS = 2048
"""The largest number of texts in one request for vectors."""

MAX_AUDIO_BYTES = 25 * 1024 * 1024
"""The largest recording. OpenAI takes 25 MB."""

MAX_SPEECH_CHARACTERS = 4096
"""The longest text to speak. OpenAI takes 4096 characters."""

NOT_ABLE: Final = "not_supported"
"""The code if the chosen model, or its adapter, has not the ability."""

BAD_FORMAT: Final = "unsupported_format"
"""The code if the chosen adapter does not speak in the format."""

Timeout = Annotated[float, msgspec.Meta(gt=0)]


class EmbedTexts(Payload, frozen=True, kw_only=True, tag="model.embed.v1"):
    """Ask for the vectors of texts. ``model`` is ``adapter/model`` or an adapter; None chooses by the settings, with
    the adapter's embedding model. ``actor``, ``purpose``, ``timeout`` and the scope are those of ``Complete``.
    """

    texts: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=MAX_TEXTS)]
    dimensions: Dimensions | None = None
    model: str | None = None
    purpose: Purpose = EMBED
    actor: str = ""
    timeout: Timeout | None = None


class VectorPart(Payload, frozen=True, kw_only=True, tag="model.vectors.v1"):
    """The next vectors: ``count`` of them as 32-bit floats, little-endian, one vector after the other."""

    count: int
    data: bytes


class TranscribeAudio(Payload, frozen=True, kw_only=True, tag="model.transcribe.v1"):
    """Ask for the text of a recording. ``audio`` is the name of the object in ``AUDIO_STORE``, which the monitor
    deletes. The other fields are those of ``TranscriptionRequest`` and ``EmbedTexts``.
    """

    audio: str
    media_type: str
    language: str = ""
    prompt: str = ""
    translate: bool = False
    segments: bool = False
    model: str | None = None
    purpose: Purpose = TRANSCRIBE
    actor: str = ""
    timeout: Timeout | None = None


class AudioTranscribed(Payload, frozen=True, kw_only=True, tag="model.transcribed.v1"):
    """The text of a recording; see ``Transcription``."""

    text: str
    language: str = ""
    seconds: float = 0.0
    segments: tuple[TranscriptSegment, ...] = ()


class SpeakText(Payload, frozen=True, kw_only=True, tag="model.speak.v1"):
    """Ask for the audio of a text. The fields are those of ``SpeechRequest`` and ``EmbedTexts``."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_SPEECH_CHARACTERS)]
    voice: str = ""
    format: SpeechFormat | None = None
    instructions: str = ""
    speed: Speed | None = None
    model: str | None = None
    purpose: Purpose = SPEAK
    actor: str = ""
    timeout: Timeout | None = None


class SpeechPart(Payload, frozen=True, kw_only=True, tag="model.speech.v1"):
    """The next bytes of the audio file."""

    data: bytes
    format: SpeechFormat


class AbilityFinished(Payload, frozen=True, kw_only=True, tag="model.ability-finished.v1"):
    """The last reply of each of these requests: who answered, what was counted, and what it cost.

    ``cost`` is ``usage`` and ``media`` multiplied by the price that ``price`` identifies (``Rate.version``); 0 and
    "" if the model has no price. ``format`` is the format of spoken audio, None for other abilities.
    """

    adapter: str
    model: str
    purpose: Purpose
    usage: Usage = Usage()
    media: MediaUsage = MediaUsage()
    cost: MicroUSD = 0
    price: str = ""
    format: SpeechFormat | None = None


EmbedReply = VectorPart | AbilityFinished
TranscribeReply = AudioTranscribed | AbilityFinished
SpeakReply = SpeechPart | AbilityFinished
