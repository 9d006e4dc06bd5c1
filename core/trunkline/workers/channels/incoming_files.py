"""The files of a person's message: pictures and documents go to the gateway as files, recordings as what is said in
them.

No adapter sends recordings to a model that answers. So a model that transcribes hears them first (ADR 88).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import msgspec

from trunkline.contracts.conversations.messages import DocumentFile
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.models.abilities import Audio, TranscriptionRequest
from trunkline.contracts.models.abilities_client import ModelAbilities
from trunkline.contracts.sentences.sentences import ENGLISH_SENTENCES, Sentences
from trunkline.errors import CompletionError, ErrorCode, TrunklineError, Unavailable

VOICE_MARK = "[Voice message]"
"""The words before a transcript of a voice message, so that the model knows that it may have been misheard."""


class FileRefused(TrunklineError):
    """A file cannot be passed on. Nothing was sent; the sentence is for the person."""


@dataclass(frozen=True, slots=True)
class IncomingFile:
    """A file that a person sent.

    ``name`` is its name for people, "" if the service gives none. ``media_type`` is what the service says of it: it
    decides only whether the file is a recording, because the gateway recognises the others by their content.
    ``is_voice`` marks a recording in which the person speaks to the agent.
    """

    name: str
    media_type: str
    data: bytes
    is_voice: bool = False

    @property
    def is_recording(self) -> bool:
        """Report whether the file is heard and not seen."""
        return self.is_voice or self.media_type.startswith("audio/")


async def message_with_files(
    message: SendMessage,
    files: Sequence[IncomingFile],
    abilities: ModelAbilities,
    say: Sentences = ENGLISH_SENTENCES,
) -> SendMessage:
    """Return the message with these files, in their order. A voice message becomes text of the message; any other
    recording becomes a text file, so that the model takes what is said there as data.

    ``abilities`` are those of the message's block (``Gateway.abilities``).

    Raises:
        FileRefused: a recording was not transcribed. The sentence says why and what to do.
        Unavailable: no monitor answers. Try again.
    """
    words, documents = [message.content], list(message.documents)
    for file in files:
        if not file.is_recording:
            documents.append(DocumentFile(media_type=file.media_type, name=file.name, data=file.data))
        elif file.is_voice:
            words.append(f"{VOICE_MARK} {await _transcript(file, abilities, say)}")
        else:
            text = (await _transcript(file, abilities, say)).encode()
            documents.append(DocumentFile(media_type="text/plain", name=_transcript_name(file), data=text))
    content = "\n\n".join(part for part in words if part.strip())
    return msgspec.structs.replace(message, content=content, documents=tuple(documents))


async def _transcript(file: IncomingFile, abilities: ModelAbilities, say: Sentences) -> str:
    kind = "voice" if file.is_voice else "recording"
    request = TranscriptionRequest(audio=Audio(media_type=file.media_type, data=file.data))
    try:
        heard = await abilities.transcribe(request)
    except CompletionError as error:
        if error.code == ErrorCode.ENGINE_UNAVAILABLE:
            raise Unavailable(str(error)) from error
        raise FileRefused(say(f"message.not_heard.{kind}", problem=error)) from error
    if not heard.text.strip():
        raise FileRefused(say(f"message.no_words.{kind}"))
    return heard.text.strip()


def _transcript_name(file: IncomingFile) -> str:
    """Return the name of a recording's transcript."""
    return f"{PurePosixPath(file.name or 'recording').stem}.txt"
