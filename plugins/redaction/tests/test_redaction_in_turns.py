"""Redaction on a real platform: what a vendor receives at the wire, what a person approves, and what a tool gets."""

import base64
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

import trunkline
from trunkline.api.gateway import SendMessage
from trunkline.api.model import Audio, DocumentFile, SpeechRequest, TranscriptionRequest
from trunkline.contracts.conversations.messages import Image
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.index import GetIndexStats
from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.subjects import MEMORY_INDEX_STATS, MEMORY_SEARCH, MEMORY_WRITE
from trunkline.contracts.turns.feed_messages import ApprovalRequested
from trunkline.contracts.workers.subjects import SPANS
from trunkline.testing.platform import Platform, platform
from trunkline.testing.script import CallTools, Reply, Say, ScriptedCall, ScriptedRequest, answer
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio

KEY = "sk-proj-Zz9canaryAAAABBBBCCCCDDDDEEEEFFFF0123456789"
CUSTOMER = "KD-123456"
PNG = b"\x89PNG\r\n\x1a\n picture"


class Tools:
    """A tool that writes, so that it is approved."""

    def __init__(self) -> None:
        self.got: list[str] = []

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[trunkline.Tool]:
        @trunkline.tool(effect="write")
        async def book(customer: str) -> str:
            """Book something."""
            self.got.append(customer)
            return f"{customer} is booked with {KEY}"

        return [book]


def script(request: ScriptedRequest) -> Reply:
    """Call the tool with the placeholder of the message, then repeat the result word by word."""
    word = next(word for word in request.program.split() if word.startswith(("CUSTOMER_", "KD-")))
    if not request.results:
        return answer(CallTools((ScriptedCall("book", {"customer": word}),)))
    return answer(Say(request.results[-1][1]))


async def collect_model_spans(running: Platform, spans: list[str]) -> anyio.Event:
    """Add the spans of calls to models to a list. The event is set once one of them has a placeholder."""
    has_placeholder = anyio.Event()

    async def collect(message: Any) -> None:
        found = [repr(span) for span in message.data.spans if span.name.startswith("chat")]
        spans.extend(found)
        if any("CUSTOMER_" in span for span in found):
            has_placeholder.set()

    await running.bus.subscribe(SPANS, collect)
    return has_placeholder


async def test_the_vendor_never_gets_what_the_tool_and_the_person_get(tmp_path: Path) -> None:
    """In two turns, with an approval, a restart between them and content in traces. The approval shows the real value,
    the answer has it, and both requests of different processes have the same placeholder."""
    tools, spans = Tools(), list[str]()
    with ScriptedProvider(script) as provider:
        config = {
            **provider.settings,
            "telemetry.capture_content": True,
            "plugins.redaction": {"enabled": True, "patterns": {"customer": "KD-[0-9]{6}"}},
        }
        conversation = None
        for _ in range(2):
            async with platform(tmp_path, plugins=[tools], config=config) as running:
                has_placeholder = await collect_model_spans(running, spans)
                text = f"Book {CUSTOMER} now, with {KEY}"
                accepted = await running.gateway.send(SendMessage(content=text, conversation=conversation))
                conversation = accepted.conversation
                async for event in running.gateway.watch(accepted.conversation, accepted.turn):
                    if isinstance(event, ApprovalRequested):
                        assert CUSTOMER in repr(event.call) and "CUSTOMER_" not in repr(event)
                        await running.gateway.decide(
                            accepted.turn, event.call.id, event.call_hash, allow=True
                        )
                        break
                told = await running.answer(accepted)
                assert CUSTOMER in told.text and KEY in told.text
                with anyio.fail_after(running.timeout):  # spans are published some time after their end
                    await has_placeholder.wait()
        sent = [json.dumps(request.body) for request in provider.answer_requests]
    assert tools.got == [CUSTOMER] * 2
    assert not any(CUSTOMER in span for span in spans)
    assert len(sent) == 4 and not any(CUSTOMER in body or KEY in body for body in sent)


async def embedded(running: Platform) -> None:
    """Wait until every passage of memory has its vector."""
    with anyio.fail_after(30):
        while True:
            stats = await running.bus.call(MEMORY_INDEX_STATS, GetIndexStats())
            if stats.vectors and stats.vectors.ready and not stats.vectors.missing:
                return
            await anyio.sleep(0.05)


async def test_the_vendor_of_vectors_and_speech_gets_placeholders(tmp_path: Path) -> None:
    """Passages of memory, questions to memory, vectors of a program, and speech. Two processes of memory and a monitor
    send the same placeholder, so that a search finds by its meaning what was embedded before a restart.
    """
    with ScriptedProvider() as provider:
        config = {
            **provider.settings,
            "memory.embedder": "openai/text-embedding-3-small",
            "plugins.redaction": {"enabled": True, "patterns": {"customer": "KD-[0-9]{6}"}},
        }
        async with platform(tmp_path, config=config) as running:
            await running.bus.call(
                MEMORY_WRITE, WriteMemory(path="pet.md", content=f"{CUSTOMER} keeps {KEY}", actor="owner")
            )
            await embedded(running)
            owner = running.gateway.abilities("main")
            await owner.embed([f"Is {CUSTOMER} there?"])
            assert [event async for event in owner.speak(SpeechRequest(text=f"Hello {CUSTOMER}"))]
            with pytest.raises(trunkline.CompletionError) as refused:
                audio = Audio(media_type="audio/ogg", data=b"OggS")
                await owner.transcribe(TranscriptionRequest(audio=audio))
            assert "files = true" in str(refused.value)
        async with platform(tmp_path, config=config) as running:
            found = await running.bus.call(MEMORY_SEARCH, SearchMemory(query=f"{CUSTOMER} keeps"))
            assert any(why.signal == "meaning" for hit in found.hits for why in hit.why)
        sent = [request for request in provider.requests if request.method == "POST"]
    bodies = [json.dumps(request.body) for request in sent]
    assert not any(CUSTOMER in body or KEY in body for body in bodies)
    assert {request.path.rpartition("/v1/")[2] for request in sent} == {"embeddings", "audio/speech"}
    placeholders = {word for body in bodies for word in re.findall(r"CUSTOMER_[0-9a-f]{12}", body)}
    assert len(placeholders) == 1


async def test_an_attached_text_is_redacted_and_a_picture_refused(tmp_path: Path) -> None:
    """Files are read from memory when the request is sent. A text and its name are redacted as any other, and the
    answer has the real value. A picture ends its turn with the reason; the next turn goes on without it.
    """
    file = DocumentFile(media_type="text/plain", name=f"{CUSTOMER}.txt", data=f"{CUSTOMER} {KEY}".encode())
    picture = Image(media_type="image/png", data=PNG)
    with ScriptedProvider(_repeat_file) as provider:
        config = {
            **provider.settings,
            "plugins.redaction": {"enabled": True, "patterns": {"customer": "KD-[0-9]{6}"}},
        }
        async with platform(tmp_path, config=config) as running:
            told = await running.say("Who is it?", documents=(file,))
            assert CUSTOMER in told.text and "CUSTOMER_" not in told.text
            shown = await running.say("Look", images=(picture,), conversation=told.accepted.conversation)
            assert "files = true" in shown.ended.detail
            assert shown.ended.code is trunkline.ErrorCode.NOT_SENT and "Leave pictures" in (
                shown.ended.sentence or ""
            )
            await every_api_says_that_nothing_was_sent(running)
            again = await running.say("And now?", conversation=told.accepted.conversation)
            assert again.ended.code is None
        sent = [json.dumps(request.body) for request in provider.answer_requests]
    assert len(sent) == 2
    assert not any(CUSTOMER in body or KEY in body or "image_url" in body for body in sent)
    assert "redaction is on" in sent[1]


async def every_api_says_that_nothing_was_sent(running: Platform) -> None:
    """Programs get the status 403 and OpenAI's ``permission_error``: the owner's setting is the reason, no vendor's
    failure. The owner reads which setting it is."""
    picture = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    chat = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": picture}}]}]
    item = [{"role": "user", "content": [{"type": "input_image", "image_url": picture}]}]
    async with httpx.AsyncClient(
        base_url=running.url, headers={"Authorization": f"Bearer {running.token}"}, timeout=60
    ) as http:
        audio = {"data": {"model": "main"}, "files": {"file": ("a.wav", b"RIFF\0\0\0\0WAVE")}}
        replies = [
            await http.post("/v1/chat/completions", json={"model": "main", "messages": chat}),
            await http.post("/v1/responses", json={"model": "main", "input": item}),
            await http.post("/v1/audio/transcriptions", **audio),
        ]
    for reply in replies:
        error = reply.json()["error"]
        assert (reply.status_code, error["type"], error["code"]) == (403, "permission_error", "not_sent"), (
            reply.text
        )
        assert "No model was asked" in error["message"] and "edaction is on" in error["message"]


def _repeat_file(request: ScriptedRequest) -> Reply:
    """Answer with the placeholder of the file's text."""
    (word, *_) = re.findall(r"CUSTOMER_[0-9a-f]{12}|KD-[0-9]{6}", request.program) or ["nobody"]
    return answer(Say(f"It is {word}."))
