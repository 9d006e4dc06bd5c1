"""Gemini's transcripts and speech in scripted form.

A recording is its own transcript, and the audio of a text is the text. A text or recording that is a program of
``trunkline.testing.script`` is carried out instead, so ``status:429`` fails.
"""

import base64
import json
from typing import Any

from trunkline.testing.script import HeardMessage, Reply, Say, Script, ScriptedRequest, Stop, answer
from trunkline.testing.vendor_apis.gemini_content import ContentWireFormat
from trunkline.testing.vendor_apis.openai_audio import verbatim
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest


def is_speech(body: dict[str, Any]) -> bool:
    """Report whether a request asks for audio."""
    return "AUDIO" in ((body.get("generationConfig") or {}).get("responseModalities") or ())


def recording_of(body: dict[str, Any]) -> str | None:
    """Return the recording of a request as text, None without one."""
    for content in body.get("contents") or ():
        for part in content.get("parts") or ():
            data = part.get("inlineData") or {}
            if str(data.get("mimeType", "")).startswith("audio/"):
                return base64.b64decode(data["data"]).decode(errors="replace")
    return None


class TranscriptContentFormat(ContentWireFormat):
    """An answer with a transcript, in JSON."""

    @staticmethod
    def hear(request: RecordedRequest) -> ScriptedRequest:
        heard = ContentWireFormat.hear(request)
        line = HeardMessage(role="user", text=recording_of(request.body) or "")
        return ScriptedRequest(lines=(line,), body=heard.body)

    def reply(self, script: Script) -> Reply:
        reply = verbatim(script(self.heard), self.heard)
        if not all(isinstance(step, Say) or step == Stop() for step in reply):
            return reply
        return answer(Say(json.dumps(self._transcript(self.said(reply)))))

    def _transcript(self, text: str) -> dict[str, Any]:
        schema = self.heard.body["generationConfig"]["responseJsonSchema"]
        said: dict[str, Any] = {"text": text, "language": "en"}
        if "segments" in schema["properties"]:
            said["segments"] = [{"start": 0.0, "end": len(text) / 10, "text": text}]
        return said


class SpeechContentFormat(ContentWireFormat):
    """An answer with audio."""

    def reply(self, script: Script) -> Reply:
        return verbatim(script(self.heard), self.heard)

    def text(self, piece: str) -> bytes:
        self.output_words += len(piece.split())
        data = base64.b64encode(piece.encode()).decode()
        return self._event([{"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": data}}])
