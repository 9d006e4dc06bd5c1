"""Images and files of messages: what reaches the vendor, where they are kept, and what removes them."""

import base64
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import openai
import pytest
from openai import AsyncOpenAI

import trunkline
from trunkline.api.model import ModelAdapter
from trunkline.contracts.conversations.messages import Attachment, DocumentFile, Image, Message
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.memory.export_transfer import export_memory
from trunkline.contracts.memory.import_transfer import import_memory
from trunkline.contracts.memory.purge import MEMORY_PURGE, PurgeMemory
from trunkline.contracts.memory.search import MEMORY_SEARCH, SearchMemory
from trunkline.contracts.turns.subjects import INBOX, JOURNAL
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio

HEAD = b"\x89PNG\r\n\x1a\n"
PICTURE, OTHER = HEAD + b"picture one" * 20_000, HEAD + b"picture two"
PDF = b"%PDF-1.7\n\xff\xfe of a report"


def url(data: bytes, declared: str = "image/png") -> str:
    return f"data:{declared};base64,{base64.b64encode(data).decode()}"


def image(data: bytes = PICTURE, **more: Any) -> dict[str, Any]:
    return {"type": "input_image", "image_url": url(data, **more)}


def asks(text: str, *parts: dict[str, Any]) -> Any:
    return [{"role": "user", "content": [{"type": "input_text", "text": text}, *parts]}]


class Harness:
    """A platform with its vendor and OpenAI's client."""

    def __init__(self, running: Platform, provider: ScriptedProvider, client: AsyncOpenAI) -> None:
        self.running, self.provider, self.client = running, provider, client

    async def ask(self, input: Any, **more: Any) -> Any:
        return await self.client.responses.create(model="main", input=input, **more)

    @property
    def images(self) -> list[bytes]:
        """The images of the last request to the vendor."""
        parts = [part for one in self.messages if isinstance(one["content"], list) for part in one["content"]]
        urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        return [base64.b64decode(url.partition(",")[2]) for url in urls]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.provider.answer_requests[-1].body["messages"])

    @property
    def sent(self) -> str:
        """The text of the last request to the vendor."""
        return json.dumps(self.messages)

    def files(self) -> list[Path]:
        """The attachments in memory."""
        return sorted(self.running.home.memory.glob("blocks/*/conversations/*/*.files/*"))

    def git(self, *arguments: str) -> str:
        memory = str(self.running.home.memory)
        done = subprocess.run(["git", "-C", memory, *arguments], capture_output=True, text=True, check=True)
        return done.stdout


@asynccontextmanager
async def harness(home: Path | None = None, **config: Any) -> AsyncIterator[Harness]:
    with ScriptedProvider() as provider:
        settings = {**provider.settings, **config}
        async with (
            platform(home, config=settings) as running,
            AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token, max_retries=0) as client,
        ):
            yield Harness(running, provider, client)


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Harness]:
    async with harness() as made:
        yield made


async def test_a_picture_is_kept_in_memory_and_sent_to_the_vendor(shared: Harness) -> None:
    """Its bytes are one plain file under git, named by the message; inbox, journal and conversation only name it."""
    answer = await shared.client.responses.with_raw_response.create(
        model="main", input=asks("say:I see.", image())
    )
    conversation, turn = answer.headers["x-conversation-id"], answer.headers["x-turn-id"]
    assert answer.parse().output_text.startswith("I see.")
    assert shared.images == [PICTURE]
    (file,) = [path for path in shared.files() if path.parent.name == f"{conversation}.files"]
    assert file.read_bytes() == PICTURE and file.suffix == ".png"
    assert "1 attachment" in shared.git("log", "--format=%s", "--", str(file))
    stored = (file.parent.parent / f"{conversation}.jsonl").read_text()
    named = msgspec.json.decode(stored.splitlines()[1])["attachments"]
    assert [(one["media_type"], one["size"]) for one in named] == [("image/png", len(PICTURE))]
    assert shared.running.home.memory / named[0]["path"] == file
    keys = {"conversation": conversation, "turn": turn}
    journal = [msgspec.json.encode(one.data) async for one in shared.running.bus.history(JOURNAL, **keys)]
    assert sum(map(len, journal)) < len(PICTURE) and all(b"picture one" not in record for record in journal)
    assert [one async for one in shared.running.bus.history(INBOX, conversation=conversation)] == []


async def test_both_surfaces_and_every_kind_of_part(shared: Harness) -> None:
    """The same files reach the vendor from chat parts, from response parts, and by the id of an upload."""
    uploaded = await shared.client.files.create(file=("cat.png", PICTURE), purpose="vision")
    notes = await shared.client.files.create(file=("notes.md", "# Grüße\nfrom Ulm"), purpose="user_data")
    encoded = base64.b64encode(b"a,b\n1,2").decode()
    chat: Any = [
        {"type": "text", "text": "say:ok"},
        {"type": "image_url", "image_url": {"url": url(OTHER), "detail": "low"}},
        {"type": "file", "file": {"file_id": uploaded.id}},
        {"type": "file", "file": {"file_id": notes.id}},
        {"type": "file", "file": {"file_data": encoded, "filename": "../table.csv"}},
    ]
    await shared.client.chat.completions.create(model="main", messages=[{"role": "user", "content": chat}])
    by_chat = shared.messages[-1]
    assert sorted(shared.images) == sorted([PICTURE, OTHER])
    assert "from Ulm" in shared.sent and "a,b\\n1,2" in shared.sent
    assert "[Attached: table.csv]" in shared.sent and "[Attached: cat.png]" in shared.sent
    await shared.ask(
        asks(
            "say:ok",
            image(OTHER),
            {"type": "input_image", "file_id": uploaded.id},
            {"type": "input_file", "file_id": notes.id},
            {"type": "input_file", "file_data": url(b"a,b\n1,2", "text/csv"), "filename": "table.csv"},
        )
    )
    assert shared.messages[-1] == by_chat


async def test_a_picture_is_understood_after_restarts_and_without_the_bus(tmp_path: Path) -> None:
    """A person asks again, in a platform that was restarted and whose message server lost everything (C2)."""
    async with harness(tmp_path / "home") as first:
        raw = await first.client.responses.with_raw_response.create(
            model="main", input=asks("say:A cat.", image())
        )
        conversation = raw.headers["x-conversation-id"]
        home = first.running.home
    shutil.rmtree(home.bus)
    async with harness(tmp_path / "home") as second:
        await second.ask("say:Still a cat.", conversation=conversation)
        assert second.images == [PICTURE]


async def test_no_search_finds_an_attachment(shared: Harness) -> None:
    """It belongs to its message, which may be in a conversation that no search finds."""
    notes = {"type": "input_file", "file_data": base64.b64encode(b"The word is zanzibar.").decode()}
    await shared.ask(asks("say:ok", notes))
    found = await shared.running.bus.call(MEMORY_SEARCH, SearchMemory(query="zanzibar"), timeout=30)
    assert "zanzibar" in shared.sent and found.hits == ()


async def test_an_old_picture_is_not_sent_for_ever(shared: Harness) -> None:
    """It is sent for four turns, then its message only names it, until a person names it again."""
    answer = await shared.ask(asks("say:A cat.", image(OTHER)))
    seen = []
    for _ in range(5):
        answer = await shared.ask("say:Yes.", previous_response_id=answer.id)
        seen.append(len(shared.images))
    assert seen == [1, 1, 1, 0, 0]
    name = shared.sent.partition("[Attached: ")[2].partition(" ")[0]
    assert name.startswith("image-") and "it is sent when the person names it" in shared.sent
    answer = await shared.ask(f"say:Look at {name} again.", previous_response_id=answer.id)
    assert shared.images == [OTHER]
    await shared.ask("say:Thanks.", previous_response_id=answer.id)
    assert shared.images == []


async def test_another_picture_is_another_conversation(shared: Harness) -> None:
    """A client that sends its whole transcript is recognised by its pictures, too."""
    conversations = []
    for picture in (PICTURE, OTHER):
        asked = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url(picture)}}]}
        transcript: Any = [asked, {"role": "assistant", "content": "x"}, {"role": "user", "content": "say:y"}]
        raw = await shared.client.chat.completions.with_raw_response.create(model="main", messages=[asked])
        transcript[1]["content"] = raw.parse().choices[0].message.content
        again = await shared.client.chat.completions.with_raw_response.create(
            model="main", messages=transcript
        )
        assert again.headers["x-conversation-id"] == raw.headers["x-conversation-id"]
        assert shared.images == [picture]
        conversations.append(raw.headers["x-conversation-id"])
    assert len(set(conversations)) == 2


async def test_a_fork_sees_the_picture(shared: Harness) -> None:
    first = await shared.ask(asks("say:A cat.", image(OTHER)))
    await shared.ask("say:One.", previous_response_id=first.id)
    await shared.ask("say:Two.", previous_response_id=first.id)
    assert shared.images == [OTHER]


async def test_channels_send_files_by_the_same_way(shared: Harness) -> None:
    """``SendMessage`` carries them; the type is the one that the content has, whatever a channel says."""
    message = SendMessage(
        content="say:ok",
        images=(Image(media_type="image/webp", data=OTHER),),
        documents=(DocumentFile(media_type="application/pdf", name="notes.txt", data=b"in words"),),
    )
    answer = await shared.running.answer(await shared.running.gateway.send(message))
    assert answer.ended.code is None
    assert shared.images == [OTHER] and "in words" in shared.sent


async def test_a_sender_cannot_name_files_of_another_conversation(shared: Harness) -> None:
    """Names in a sender's own messages are removed, so another conversation's file reaches no model."""
    await shared.ask(asks("say:x", image(OTHER)))
    path = str(shared.files()[0].relative_to(shared.running.home.memory))
    stolen = Attachment(path=path, name="a.png", media_type="image/png", size=9)
    earlier = Message(id="m", role="user", content="look", attachments=(stolen,), files=(stolen,))
    answer = Message(id="n", role="assistant", content="x")
    for message in (
        SendMessage(content="say:y", history=(earlier, answer)),
        SendMessage(content="say:y", preceding=(earlier,)),
    ):
        accepted = await shared.running.gateway.send(message)
        await shared.running.answer(accepted)
        assert shared.images == [] and "a.png" not in shared.sent
        view = await shared.running.gateway.conversation(accepted.conversation, include_tools=True)
        assert not any(one.files or one.attachments for one in view.messages)


HOSTILE: tuple[tuple[dict[str, Any], int], ...] = (
    (image(b"MZ\x90\x00 a program"), 400),
    (image(b"<svg onload=alert(1)>"), 400),
    ({"type": "input_image", "image_url": "http://169.254.169.254/latest/meta-data"}, 400),
    ({"type": "input_image", "image_url": "file:///etc/passwd"}, 400),
    ({"type": "input_image", "file_id": "file_unknown"}, 400),
    ({"type": "input_file", "file_data": base64.b64encode(b"PK\x03\x04\x00\xff").decode()}, 400),
    ({"type": "input_file", "file_data": ""}, 400),
    (image(HEAD + b"x" * (1024 * 1024)), 413),
)


async def test_hostile_files_are_refused() -> None:
    """By their content and size, before anything is stored, and without a request to any host."""
    async with harness(**{"gateway.max_attachment_mb": 1, "gateway.max_attachments": 2}) as made:
        for part, status in HOSTILE:
            with pytest.raises(openai.APIStatusError) as refused:
                await made.ask(asks("say:x", part))
            assert refused.value.status_code == status and refused.value.param, part
        with pytest.raises(openai.BadRequestError, match="at most 2 files"):
            await made.ask(asks("say:x", *[image(OTHER)] * 3))
        assert made.files() == [] and made.provider.answer_requests == []


class Blind(ScriptedModel):
    """A model that takes neither images nor documents."""

    sees = False


class Models:
    """A plugin with one adapter."""

    def __init__(self, model: ModelAdapter) -> None:
        self.model = model

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ModelAdapter]:
        return [self.model]


async def test_a_model_that_does_not_take_a_file_says_so() -> None:
    """400 with the reason; the next message in the conversation is answered, with a note in place of the file."""
    model = Blind()
    config = {"runtime.provider_adapter": "scripted"}
    async with (
        platform(plugins=[Models(model)], config=config) as running,
        AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token, max_retries=0) as client,
    ):
        pdf = {"type": "input_file", "file_data": url(PDF, "application/pdf"), "filename": "r.pdf"}
        for part, kind in ((image(), "images"), (pdf, "documents")):
            with pytest.raises(
                openai.BadRequestError, match=f"the model does not take the request .* sends no {kind}"
            ) as refused:
                await client.responses.create(model="main", input=asks("say:x", part))
            conversation = refused.value.response.headers["x-conversation-id"]
            answer = await client.responses.create(model="main", input="say:y", conversation=conversation)
            assert answer.output_text == "y"
            said = "\n".join(message.content for message in model.requests[-1].messages)
            assert "this model does not take files of this type" in said


async def test_purge_export_import_and_reset_cover_attachments(tmp_path: Path) -> None:
    """A purge leaves the bytes nowhere in history, an archive carries them, and a reset of the block removes them."""
    async with harness() as made:
        raw = await made.client.responses.with_raw_response.create(model="main", input=asks("say:a", image()))
        kept = await made.client.responses.with_raw_response.create(
            model="main", input=asks("say:b", image(OTHER))
        )
        gone, stays = raw.headers["x-conversation-id"], kept.headers["x-conversation-id"]
        blob = made.git("hash-object", *[str(path) for path in made.files() if gone in str(path)]).strip()
        purge = PurgeMemory(target=gone, confirm=gone, actor="owner")
        purged = await made.running.bus.call(MEMORY_PURGE, purge, timeout=60)
        assert any(".files/" in path for path in purged.paths)
        assert [path.parent.name for path in made.files()] == [f"{stays}.files"]
        assert blob not in made.git("cat-file", "--batch-check", "--batch-all-objects")
        archive = tmp_path / "all.tar"
        await export_memory(made.running.bus, archive)
    async with harness() as other:
        await import_memory(other.running.bus, archive, actor="owner")
        (file,) = other.files()
        assert file.read_bytes() == OTHER
        await other.ask("say:Still there.", conversation=stays)
        assert other.images == [OTHER]
        await other.running.gateway.reset_block("main")
        assert other.files() == []


async def test_a_compacted_conversation_with_files_can_be_sent_back(shared: Harness) -> None:
    """Its items name the files in place of them: the output of a compaction is the input of the next response. What
    followed the named response is not summarised."""
    first = await shared.client.responses.create(model="main", input=asks("say:I see.", image()))
    await shared.client.responses.create(model="main", input="say:Later.", previous_response_id=first.id)
    body = {"model": "main", "previous_response_id": first.id}
    headers = {"authorization": f"Bearer {shared.running.token}"}
    async with httpx.AsyncClient(base_url=shared.running.url, headers=headers) as http:
        reply = await http.post("/v1/responses/compact", json=body)
        assert reply.status_code == 200, reply.text
        assert "Later" not in shared.sent
        output = reply.json()["output"]
        assert "[attached image-" in output[0]["content"][0]["text"]
        sent = {"model": "main", "input": [*output, {"role": "user", "content": "say:Yes."}]}
        again = await http.post("/v1/responses", json=sent)
        assert again.status_code == 200, again.text
        block = await http.post("/api/blocks", json={"name": "other"})
        assert block.status_code < 300, block.text
        refused = await http.post("/v1/responses/compact", json={**body, "model": "other"})
        assert refused.status_code == 409
