"""The supported part of OpenAI's schemas for embeddings, transcripts and speech. Output has no undocumented fields."""

from typing import Annotated, Any, Literal

import msgspec

from trunkline.contracts.models.abilities import Dimensions, SpeechFormat, Speed
from trunkline.contracts.models.ability_messages import MAX_SPEECH_CHARACTERS
from trunkline.workers.gateway.http.openai.schemas import FullStruct, SparseStruct
from trunkline.workers.gateway.http.schemas.schema_base import SAID, SOME, In

TranscriptForm = Literal["json", "text", "srt", "verbose_json", "vtt", "diarized_json"]

# Requests ----------------------------------------------------------------------------------------------------


class EmbeddingsRequest(In, frozen=True, kw_only=True):
    """``POST /v1/embeddings``. ``input`` is a text or a list of texts."""

    model: str
    input: Annotated[str, SAID] | Annotated[list[Any], SOME]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Dimensions | None = None
    user: str | None = None


class TranscriptionForm(In, frozen=True, kw_only=True):
    """The form of ``POST /v1/audio/transcriptions`` and ``POST /v1/audio/translations``, besides its ``file``."""

    file: Annotated[str, msgspec.Meta(extra_json_schema={"format": "binary"})] = ""
    model: str
    language: str = ""
    prompt: str = ""
    response_format: TranscriptForm = "json"
    stream: Literal["true", "false"] = "false"


class VoiceId(In, frozen=True, kw_only=True):
    """A voice of the vendor by its id."""

    id: str


class SpeechIn(In, frozen=True, kw_only=True):
    """``POST /v1/audio/speech``"""

    model: str
    input: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_SPEECH_CHARACTERS)]
    voice: str | VoiceId = ""
    response_format: SpeechFormat | None = None
    instructions: str = ""
    speed: Speed | None = None
    stream_format: Literal["audio", "sse"] = "audio"


# Responses ---------------------------------------------------------------------------------------------------


class EmbeddingOut(FullStruct, frozen=True, kw_only=True):
    """One vector: numbers, or 32-bit floats (little-endian) in base64."""

    object: Literal["embedding"]
    index: int
    embedding: tuple[float, ...] | str


class EmbeddingUsageOut(FullStruct, frozen=True, kw_only=True):
    """The tokens of the texts."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingList(FullStruct, frozen=True, kw_only=True):
    """The vectors, in the order of the texts."""

    object: Literal["list"]
    data: tuple[EmbeddingOut, ...]
    model: str
    usage: EmbeddingUsageOut


class TokenUsageOut(FullStruct, frozen=True, kw_only=True):
    """The counted tokens."""

    type: Literal["tokens"]
    input_tokens: int
    output_tokens: int
    total_tokens: int


class TranscriptOut(SparseStruct, frozen=True, kw_only=True):
    """A transcript."""

    text: str
    usage: TokenUsageOut | None = None


class SegmentOut(SparseStruct, frozen=True, kw_only=True):
    """A part of a transcript. Times are in seconds."""

    id: int
    start: float
    end: float
    text: str
    speaker: str = ""


class VerboseTranscriptOut(SparseStruct, frozen=True, kw_only=True):
    """A transcript with what the vendor tells of it."""

    task: Literal["transcribe", "translate"]
    text: str
    language: str
    duration: float
    segments: tuple[SegmentOut, ...]
    usage: TokenUsageOut | None = None


class TranscriptDelta(FullStruct, frozen=True, kw_only=True):
    """The event ``transcript.text.delta``."""

    type: Literal["transcript.text.delta"]
    delta: str


class TranscriptDone(SparseStruct, frozen=True, kw_only=True):
    """The event ``transcript.text.done``."""

    type: Literal["transcript.text.done"]
    text: str
    usage: TokenUsageOut | None = None


class SpeechDelta(FullStruct, frozen=True, kw_only=True):
    """The event ``speech.audio.delta``: the next bytes of the audio, in base64."""

    type: Literal["speech.audio.delta"]
    audio: str


class SpeechDone(FullStruct, frozen=True, kw_only=True):
    """The event ``speech.audio.done``."""

    type: Literal["speech.audio.done"]
    usage: TokenUsageOut
