"""OpenAI's files: upload, list, content, expiry and delete, with OpenAI's client and with hostile forms."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import msgspec
import openai
import pytest

from trunkline.contracts.gateway.access import OWNER
from trunkline.testing.platform import platform
from trunkline.workers.gateway.files import FileService, safe_name
from trunkline.workers.gateway.http.openai.file_routes import FileList, FileObject
from trunkline.workers.gateway.http.openai.schemas import ErrorObject
from trunkline_bus import Refusal

from .conftest import Environment, until

pytestmark = pytest.mark.anyio

LARGE = bytes(range(256)) * 4 * 1024 * 3
"""3 MiB: more than a piece of the store, and more than the form's reader keeps in main memory."""


@pytest.fixture
async def client(env: Environment) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{env.url}/v1", api_key=env.token, max_retries=0) as made:
        for file in (await made.files.list()).data:
            await made.files.delete(file.id)
        yield made


async def test_a_file_comes_back_as_it_was(env: Environment, client: openai.AsyncOpenAI) -> None:
    """Upload, retrieve, content and delete; the object is OpenAI's, without undocumented fields."""
    file = await client.files.create(
        file=("large.bin", LARGE),
        purpose="user_data",
        expires_after={"anchor": "created_at", "seconds": 3600},
    )
    assert (file.bytes, file.filename, file.purpose, file.status) == (
        len(LARGE),
        "large.bin",
        "user_data",
        "processed",
    )
    assert file.expires_at == file.created_at + 3600
    assert (await client.files.retrieve(file.id)) == file
    assert (await client.files.content(file.id)).content == LARGE
    raw = await env.http.get(f"/v1/files/{file.id}")
    msgspec.json.decode(raw.content, type=FileObject)
    content = await env.http.get(f"/v1/files/{file.id}/content")
    assert content.headers["content-disposition"].startswith("attachment;")
    assert content.headers["x-content-type-options"] == "nosniff"
    assert (await client.files.delete(file.id)).deleted
    for ask in (client.files.retrieve(file.id), client.files.content(file.id), client.files.delete(file.id)):
        with pytest.raises(openai.NotFoundError):
            await ask


async def test_files_are_listed_page_by_page(env: Environment, client: openai.AsyncOpenAI) -> None:
    for number, purpose in enumerate(("vision", "user_data", "user_data")):
        await client.files.create(file=(f"{number}.txt", b"x"), purpose=purpose)  # type: ignore[arg-type]
    assert [file.filename async for file in client.files.list(limit=1)] == ["2.txt", "1.txt", "0.txt"]
    listed = await client.files.list(purpose="user_data", order="asc")
    assert [file.filename for file in listed.data] == ["1.txt", "2.txt"]
    msgspec.json.decode((await env.http.get("/v1/files")).content, type=FileList)
    for query, param in (("limit=0", "limit"), ("order=up", "order"), ("after=file_x", "after")):
        refused = await env.http.get(f"/v1/files?{query}")
        assert msgspec.json.decode(refused.content, type=ErrorObject).error.param == param


FORM = {"content-type": "multipart/form-data; boundary=b"}
PURPOSE = 'content-disposition: form-data; name="purpose"\r\n\r\nuser_data'
FILE = 'content-disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello'


def form(*parts: str, end: str = "\r\n--b--\r\n") -> bytes:
    return ("--b\r\n" + "\r\n--b\r\n".join(parts) + end).encode()


EXPIRES = 'content-disposition: form-data; name="expires_after[seconds]"\r\n\r\n'
HOSTILE: tuple[tuple[bytes, dict[str, str], str | None], ...] = (
    (b"{}", {"content-type": "application/json"}, "Content-Type"),
    (b"", FORM, "file"),
    (form(PURPOSE), FORM, "file"),
    (form(FILE), FORM, "purpose"),
    (form(FILE, PURPOSE.replace("user_data", "gossip")), FORM, "purpose"),
    (form(FILE.replace("hello", ""), PURPOSE), FORM, "file"),
    (form(FILE, FILE, PURPOSE), FORM, None),
    (form(FILE, PURPOSE, EXPIRES + "60"), FORM, "expires_after.seconds"),
    (form(FILE, PURPOSE, EXPIRES + "9" * 400), FORM, "expires_after.seconds"),
    (form(FILE, PURPOSE, end=""), FORM, "purpose"),
    (form(PURPOSE, FILE, end=""), FORM, "file"),
    (form(FILE, *[PURPOSE] * 100), FORM, None),
    (form(PURPOSE, FILE), {"content-type": "multipart/form-data"}, None),
)


@pytest.mark.parametrize("number", range(len(HOSTILE)))
async def test_hostile_forms_are_refused(env: Environment, client: openai.AsyncOpenAI, number: int) -> None:
    """400 in OpenAI's shape, with the field where there is one, and nothing is stored."""
    body, headers, param = HOSTILE[number]
    response = await env.http.post("/v1/files", content=body, headers=headers)
    error = msgspec.json.decode(response.content, type=ErrorObject).error
    assert (response.status_code, error.param) == (400, param), response.text
    assert (await client.files.list()).data == []


async def test_a_file_above_the_limit_is_refused_while_it_arrives() -> None:
    """413, whether or not the form says how large it is, and nothing is stored."""
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        yield form(PURPOSE, FILE.replace("hello", ""), end="")
        while sent < 100_000_000:
            sent += 65_536
            yield b"x" * 65_536

    async with (
        platform(workers=("gateway", "memory"), config={"gateway.max_attachment_mb": 1}) as running,
        openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token, max_retries=0) as client,
    ):
        with pytest.raises(openai.APIStatusError) as refused:
            await client.files.create(file=("a.bin", b"x" * 1_050_000), purpose="user_data")
        assert refused.value.status_code == 413
        headers = {"authorization": f"Bearer {running.token}", **FORM}
        with anyio.fail_after(60):
            response = await client._client.post(
                f"{running.url}/v1/files", content=endless(), headers=headers
            )
        assert response.status_code == 413
        assert (await client.files.list()).data == []


async def test_an_expired_file_is_not_found(env: Environment) -> None:
    """It is neither listed, nor retrieved, nor used in a message."""
    files = FileService(env.bus, max_size=100, lifetime=1)

    async def pieces() -> AsyncIterator[bytes]:
        yield b"x"

    stored = await files.add(pieces(), OWNER, name="a.txt", purpose="user_data", lifetime=None)

    async def gone() -> bool:
        return await files.load(stored.id, OWNER) is None

    await until(gone)
    with pytest.raises(Refusal):
        await files.get(stored.id, OWNER)
    assert stored.id not in [file.id for file in await files.list_files(OWNER)]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Windows\\evil.exe", "evil.exe"),
        ("a\r\nSet-Cookie: b.txt", "aSet-Cookie: b.txt"),
        ('x".txt', "x.txt"),
        ("...", "file"),
        ("", "file"),
        ("x" * 300 + ".pdf", "x" * 196 + ".pdf"),
    ],
)
async def test_names_are_sanitised(
    env: Environment, client: openai.AsyncOpenAI, name: str, safe: str
) -> None:
    assert safe_name(name) == safe
    if name and not set(name) & set('\r"'):  # which the client encodes
        file: Any = await client.files.create(file=(name, b"x"), purpose="user_data")
        assert file.filename == safe


async def test_a_message_names_few_files(env: Environment) -> None:
    """Ids are counted before any file is looked up, whether the files exist or not."""
    parts = [{"type": "input_file", "file_id": f"file_{number}"} for number in range(11)]
    response = await env.http.post(
        "/v1/responses", json={"model": "main", "input": [{"role": "user", "content": parts}]}
    )
    assert response.status_code == 413 and env.monitor.seen == []
