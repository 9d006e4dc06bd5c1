"""Files of a person's message: which become files, which become words, and what is refused with a sentence."""

import pytest

from trunkline import CompletionError, Unavailable
from trunkline.api.channel import FileRefused, IncomingFile, message_with_files
from trunkline.api.gateway import SendMessage
from trunkline.api.model import Transcription, TranscriptionRequest
from trunkline.api.testing import ScriptedAbilities

pytestmark = pytest.mark.anyio

VOICE = IncomingFile("", "audio/ogg", b"hello", is_voice=True)


class Refusing(ScriptedAbilities):
    """Models that refuse recordings with one code."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    async def transcribe(self, request: TranscriptionRequest) -> Transcription:
        raise CompletionError(self._code, "No.")


async def test_files_keep_their_order_and_words_follow_the_text() -> None:
    """Recordings become a text file in their place, voice messages become paragraphs behind the text."""
    files = [
        IncomingFile("a.pdf", "application/pdf", b"%PDF-"),
        IncomingFile("talk.old.mp3", "audio/mpeg", b"on stage"),
        VOICE,
        IncomingFile("", "audio/mpeg", b"no name"),
    ]
    message = await message_with_files(SendMessage(content="see", client_id="1"), files, ScriptedAbilities())
    assert message.content == "see\n\n[Voice message] hello" and message.client_id == "1"
    assert [(one.name, one.data) for one in message.documents] == [
        ("a.pdf", b"%PDF-"), ("talk.old.txt", b"on stage"), ("recording.txt", b"no name"),
    ]  # fmt: skip


async def test_a_silent_recording_is_refused() -> None:
    """Nothing is sent of a recording without words."""
    silent = IncomingFile("", "audio/ogg", b"  ", is_voice=True)
    with pytest.raises(FileRefused, match="no words"):
        await message_with_files(SendMessage(content=""), [silent], ScriptedAbilities())


@pytest.mark.parametrize("code", ["not_supported", "provider_error", "too_large", "timeout"])
async def test_a_model_that_does_not_hear_is_a_sentence_for_the_person(code: str) -> None:
    """The sentence has the reason and what to do."""
    with pytest.raises(FileRefused, match=r"voice message: No\. .*`transcribe` in \[models\]"):
        await message_with_files(SendMessage(content=""), [VOICE], Refusing(code))


async def test_a_missing_monitor_is_no_answer_about_the_recording() -> None:
    """The channel keeps the message and tries again."""
    with pytest.raises(Unavailable):
        await message_with_files(SendMessage(content=""), [VOICE], Refusing("engine_unavailable"))
