"""Vectors, transcripts and speech by a script, for tests of tools and channels. No vendor and no bus."""

import hashlib
from collections.abc import AsyncIterator, Sequence

from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.models.abilities import (
    Embeddings,
    SpeechAudio,
    SpeechEvent,
    SpeechFinish,
    SpeechRequest,
    Transcription,
    TranscriptionRequest,
    TranscriptSegment,
)
from trunkline.contracts.models.media_usage import MediaUsage

DIMENSIONS = 8
"""The length of a vector if the request does not say it."""

AbilityRequest = tuple[str, ...] | TranscriptionRequest | SpeechRequest


class ScriptedAbilities:
    """A ``ModelAbilities``. ``requests`` are the requests in order; those for vectors as their texts.

    A recording is its own transcript: its bytes are the text, in UTF-8, and each byte lasts a tenth of a second. The
    audio of a text is the text, in parts of one word. Equal texts have equal vectors.
    """

    def __init__(self) -> None:
        self.requests: list[AbilityRequest] = []

    async def embed(
        self, texts: Sequence[str], *, model: str = "", dimensions: int | None = None
    ) -> Embeddings:
        """Return a vector for each text."""
        self.requests.append(tuple(texts))
        vectors = tuple(scripted_vector(text, dimensions or DIMENSIONS) for text in texts)
        words = sum(len(text.split()) for text in texts)
        return Embeddings(vectors=vectors, usage=Usage(input_tokens=words), model=model or "scripted-embed")

    async def transcribe(self, request: TranscriptionRequest) -> Transcription:
        """Return the bytes of the recording as text."""
        self.requests.append(request)
        text, seconds = request.audio.data.decode(), len(request.audio.data) / 10
        parts = (TranscriptSegment(start=0.0, end=seconds, text=text),) if request.segments else ()
        return Transcription(
            text=text,
            language="en" if request.translate else request.language,
            seconds=seconds,
            segments=parts,
            media=MediaUsage(seconds=seconds),
            model=request.model or "scripted-transcribe",
        )

    async def speak(self, request: SpeechRequest) -> AsyncIterator[SpeechEvent]:
        """Yield the text as audio."""
        self.requests.append(request)
        for word in request.text.split(" "):
            yield SpeechAudio(word.encode())
        media = MediaUsage(characters=len(request.text))
        yield SpeechFinish(
            format=request.format or "mp3", media=media, model=request.model or "scripted-speak"
        )


def scripted_vector(text: str, dimensions: int) -> tuple[float, ...]:
    """Return the vector of a text. Its numbers have an exact form in 32 bits."""
    return tuple(
        hashlib.sha256(f"{number} {text}".encode()).digest()[0] / 128 - 1 for number in range(dimensions)
    )
