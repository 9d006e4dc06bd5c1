"""OpenAI's transcripts and speech in scripted form.

A recording is its own transcript: its bytes are the text, and each byte lasts a tenth of a second. The audio of a text
is the text, in parts of one word. So the instructions of ``trunkline.testing.script`` work in both: ``status:429``.
"""

import base64
from collections.abc import Iterator
from typing import Any

from trunkline.testing.script import HeardMessage, Reply, Say, Script, ScriptedCall, ScriptedRequest, answer
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest, RuleViolation, WireFormat, sse

SPEECH_PATH = "/audio/speech"
TEXT_PATHS = ("/audio/transcriptions", "/audio/translations")

READABLE = ("flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm")
ANSWER_FORMS = {
    "whisper": ("json", "text", "srt", "verbose_json", "vtt"),
    "diarize": ("json", "text", "diarized_json"),
    "": ("json",),
}
UNKNOWN = "You said: "
"""The beginning of the answer to a message that is no program."""

FORMATS = ("mp3", "opus", "aac", "flac", "wav", "pcm")
MAX_SPEECH = 4096


def _transcript(text: str, body: dict[str, Any]) -> dict[str, Any]:
    seconds = len(text.encode()) / 10
    form = body.get("response_format", "json")
    duration = {"type": "duration", "seconds": seconds}
    if form == "verbose_json":
        segment = {"id": 0, "start": 0.0, "end": seconds, "text": f" {text}"}
        return {
            "text": text,
            "language": "english",
            "duration": seconds,
            "segments": [segment],
            "usage": duration,
        }
    if form == "diarized_json":
        segment = {"id": "seg_0", "start": 0.0, "end": seconds, "text": text, "speaker": "A", "type": "x"}
        return {
            "text": text,
            "task": "transcribe",
            "duration": seconds,
            "segments": [segment],
            "usage": duration,
        }
    if "4o" not in str(body.get("model")):
        return {"text": text, "languages": [{"code": body.get("language") or "en"}], "usage": duration}
    words = len(text.split())
    usage = {
        "type": "tokens",
        "input_tokens": words + 1,
        "output_tokens": words,
        "total_tokens": 2 * words + 1,
    }
    return {"text": text, "usage": usage}


def transcript_violations(path: str, body: Any) -> Iterator[RuleViolation]:
    """Check a request for a transcript."""
    if not isinstance(body, dict) or not isinstance(body.get("file"), dict):
        yield RuleViolation("file", "a multipart form with a file is required")
        return
    model = str(body.get("model", ""))
    if not model:
        yield RuleViolation("model", "it is required")
    if path.endswith("translations") and "whisper" not in model:
        yield RuleViolation("model", "only whisper translates")
    if body["file"]["name"].rpartition(".")[2] not in READABLE:
        yield RuleViolation("file", f"the ending of the name is one of {', '.join(READABLE)}")
    family = next(name for name in ANSWER_FORMS if name in model)
    if body.get("response_format", "json") not in ANSWER_FORMS[family]:
        yield RuleViolation("response_format", f"{model} offers {', '.join(ANSWER_FORMS[family])}")


def speech_violations(body: Any) -> Iterator[RuleViolation]:
    """Check a request for speech."""
    text = body.get("input")
    if not isinstance(text, str) or not 0 < len(text) <= MAX_SPEECH:
        yield RuleViolation("input", f"a text of 1 to {MAX_SPEECH} characters is required")
    for name in ("model", "voice"):
        if not body.get(name):
            yield RuleViolation(name, "it is required")
    if body.get("response_format", "mp3") not in FORMATS:
        yield RuleViolation("response_format", f"it is one of {', '.join(FORMATS)}")
    if str(body.get("model")).startswith("tts-1") and ("stream_format" in body or "instructions" in body):
        yield RuleViolation("model", "tts-1 has neither events nor instructions")


class TranscriptWireFormat(WireFormat):
    """The text of a recording, in one document."""

    @staticmethod
    def hear(request: RecordedRequest) -> ScriptedRequest:
        return _heard(str(request.body["file"]["data"]), request)

    @staticmethod
    def streams(request: RecordedRequest) -> bool:
        return False

    def reply(self, script: Script) -> Reply:
        return verbatim(script(self.heard), self.heard)

    def begin(self) -> bytes:
        return b""

    def text(self, piece: str) -> bytes:
        return b""

    def reasoning(self, piece: str) -> bytes:
        return b""

    def calls(self, calls: tuple[ScriptedCall, ...]) -> Iterator[bytes]:
        yield from ()

    def stop(self, reason: str) -> bytes:
        return b""

    def whole(self, reply: Reply) -> dict[str, Any]:
        return _transcript(self.said(reply), self.heard.body)


class SpeechWireFormat(TranscriptWireFormat):
    """The audio of a text, as bytes."""

    content_type = "audio/mpeg"

    @staticmethod
    def hear(request: RecordedRequest) -> ScriptedRequest:
        return _heard(str(request.body.get("input", "")), request)

    @staticmethod
    def streams(request: RecordedRequest) -> bool:
        return True

    def text(self, piece: str) -> bytes:
        self.output_words += 1
        return piece.encode()


class SpeechEventsWireFormat(SpeechWireFormat):
    """The audio of a text, as events."""

    content_type = "text/event-stream"

    def text(self, piece: str) -> bytes:
        self.output_words += 1
        return sse({"type": "speech.audio.delta", "audio": base64.b64encode(piece.encode()).decode()})

    def stop(self, reason: str) -> bytes:
        words = self.heard.words
        usage = {
            "input_tokens": words,
            "output_tokens": self.output_words,
            "total_tokens": words + self.output_words,
        }
        return sse({"type": "speech.audio.done", "usage": usage})


def _heard(text: str, request: RecordedRequest) -> ScriptedRequest:
    return ScriptedRequest(lines=(HeardMessage(role="user", text=text),), body=request.body)


def verbatim(reply: Reply, request: ScriptedRequest) -> Reply:
    """Return the reply to a program; what is no program is said as it is."""
    first = reply[0] if reply else None
    return (
        answer(Say(request.program)) if isinstance(first, Say) and first.text.startswith(UNKNOWN) else reply
    )
