"""The threads and connections of answers that nobody waits for any more."""

import ipaddress
import ssl
import threading
import time
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute
from anyio.streams.tls import TLSListener
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from trunkline import Message
from trunkline.api.model import ModelRequest, Text
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_bedrock.adapter import BedrockAdapter
from trunkline_bedrock.bedrock_clients import QUEUED_EVENTS
from trunkline_bedrock.settings import BedrockSettings

pytestmark = pytest.mark.anyio

DEADLINE = 60.0


def adapter_of(provider: ScriptedProvider) -> BedrockAdapter:
    return BedrockAdapter(
        BedrockSettings(endpoint_url=provider.address, region="us-east-1", model="scripted")
    )


def asks(text: str) -> ModelRequest:
    return ModelRequest(messages=(Message(id="msg_1", role="user", content=text),))


def answer_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "bedrock-answer"]


async def until(condition: Any) -> None:
    with anyio.fail_after(DEADLINE):
        while not condition():  # noqa: ASYNC110 - the condition is in another thread
            await anyio.sleep(0.005)


@pytest.mark.parametrize("program", ["hang", "stall:3", "slow:100000:1"])
async def test_a_cancelled_answer_leaves_no_thread_and_no_connection(program: str) -> None:
    """Before the head of the response, in a pause, and while events arrive."""
    async with ScriptedProvider().serving() as provider:
        adapter = adapter_of(provider)

        async def ask() -> None:
            async for _ in adapter.stream(asks(program)):
                pass

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await until(lambda: len(provider.answer_requests) == 1 and answer_threads())
            await anyio.sleep(0.05)
            begin = time.monotonic()
            tasks.cancel_scope.cancel()
        assert time.monotonic() - begin < 5
        await until(lambda: not answer_threads())
        await until(lambda: provider.answer_requests[0].outcome == "abandoned")
        await adapter.aclose()


async def test_a_slow_reader_holds_the_server_back() -> None:
    """The queue is bounded: the events beyond it wait in the thread and in the connection."""
    words = QUEUED_EVENTS * 40
    async with ScriptedProvider().serving() as provider:
        adapter = adapter_of(provider)
        async with aclosing(adapter.stream(asks(f"slow:{words}:0"))) as events:  # type: ignore[type-var]
            first = await anext(events)
            await anyio.sleep(0.3)
            assert answer_threads()
            text = first.text + "".join([event.text async for event in events if isinstance(event, Text)])
        await adapter.aclose()
    assert len(text.split()) == words


async def test_closing_an_answer_leaves_its_connection_to_the_next_one() -> None:
    """The exchange of a finished answer has given its connection back."""
    async with ScriptedProvider().serving() as provider:
        adapter = adapter_of(provider)
        first = adapter.stream(asks("say:one"))
        events = [event async for event in first]
        async with aclosing(adapter.stream(asks("slow:3:50"))) as second:  # type: ignore[type-var]
            events.append(await anext(second))
            await first.aclose()  # type: ignore[attr-defined]
            events += [event async for event in second]
        await adapter.aclose()
    assert "".join(event.text for event in events if isinstance(event, Text)) == "oneword-1 word-2 word-3"


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for 127.0.0.1 of its own, and a server's context with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "scripted")])
    now = datetime.now(UTC)
    host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(host, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = made.public_bytes(Encoding.PEM)
    (folder / "server.pem").write_bytes(private + public)
    (folder / "ca.pem").write_bytes(public)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.pem")
    return folder / "ca.pem", context


async def test_cancelling_closes_an_encrypted_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread is blocked within TLS when the socket below it is shut down."""
    came, left = anyio.Event(), anyio.Event()

    async def serve(stream: Any) -> None:
        async with stream:
            try:
                while True:
                    await stream.receive()
                    came.set()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                left.set()

    authority, context = certificate(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority))
    plain = await anyio.create_tcp_listener(local_host="127.0.0.1")
    listener = TLSListener(plain, context, standard_compatible=False)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        url = f"https://127.0.0.1:{plain.extra(SocketAttribute.local_port)}"
        adapter = BedrockAdapter(BedrockSettings(endpoint_url=url, region="us-east-1", model="m"))
        with anyio.move_on_after(DEADLINE) as scope:

            async def ask() -> None:
                async for _ in adapter.stream(asks("x")):
                    pass

            async with anyio.create_task_group() as asking:
                asking.start_soon(ask)
                await came.wait()
                asking.cancel_scope.cancel()
            await left.wait()
            await until(lambda: not answer_threads())
        assert not scope.cancelled_caught
        await adapter.aclose()
        tasks.cancel_scope.cancel()


async def test_a_cancelled_list_of_models_ends_at_once() -> None:
    """Calls without events are closed in the same way."""
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        joined, left = anyio.Event(), anyio.Event()

        async def serve(stream: Any) -> None:
            joined.set()
            async with stream:
                try:
                    while True:
                        await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    left.set()

        tasks.start_soon(listener.serve, serve)
        port = listener.extra(SocketAttribute.local_port)
        adapter = BedrockAdapter(BedrockSettings(endpoint_url=f"http://127.0.0.1:{port}", region="us-east-1"))
        async with anyio.create_task_group() as asking:
            asking.start_soon(adapter.models)
            with anyio.fail_after(DEADLINE):
                await joined.wait()
            asking.cancel_scope.cancel()
        with anyio.fail_after(DEADLINE):
            await left.wait()
        await adapter.aclose()
        tasks.cancel_scope.cancel()
