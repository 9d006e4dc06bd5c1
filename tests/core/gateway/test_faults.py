"""Missing and ending parts: no bus, no memory, a worker that drains, a client that repeats itself."""

import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import msgspec
import pytest

from trunkline.config import load_config
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.turns.feed_messages import TextDelta
from trunkline.contracts.turns.subjects import INBOX
from trunkline.errors import FIXED_SENTENCES, ErrorCode, Unavailable
from trunkline.home.paths import Home
from trunkline.runtime.connection_settings import bus_settings
from trunkline.runtime.worker import Worker
from trunkline.runtime.worker_host import WorkerHostSettings, run_worker
from trunkline.testing.platform import clean_environ, platform
from trunkline.workers.gateway.http.openapi.openapi_document import openapi_document
from trunkline.workers.gateway.http.openapi.openapi_operations import OPERATIONS
from trunkline.workers.gateway.http.schemas.platform_schemas import Readiness
from trunkline.workers.gateway.http.schemas.schema_base import Error
from trunkline.workers.gateway.worker import GatewayWorker
from trunkline_bus import Bus, EmbeddedServer, RemoteFault, ServerSettings, connect

from .conftest import Environment, until
from .fake_monitor import FakeTurn
from .sse_client import events_in

pytestmark = pytest.mark.anyio

NEW = "/conversations/messages"


@asynccontextmanager
async def lone_gateway(home: Path, server: EmbeddedServer, stop: anyio.Event) -> AsyncIterator[Worker]:
    """A gateway with no other worker, on a server of the test's own."""
    config = load_config(home, flags={"gateway.port": 0}, environ=clean_environ())
    Home.of(config).prepare()
    bus = bus_settings(config, url=server.url, user=server.user, password=server.password)
    async with anyio.create_task_group() as tasks:

        async def run(*, task_status: anyio.abc.TaskStatus[Worker]) -> None:
            await run_worker(GatewayWorker, WorkerHostSettings(config, bus), stop, task_status=task_status)

        yield await tasks.start(run)
        tasks.cancel_scope.cancel()


def http_to(worker: Worker) -> httpx.AsyncClient:
    token = worker.context.home.token_file.read_text().strip()
    return httpx.AsyncClient(
        base_url=worker.address, headers={"authorization": f"Bearer {token}"}, timeout=60
    )


async def test_without_the_bus_nothing_is_accepted(tmp_path: Path) -> None:
    """Without the bus: 503 with the fixed sentence, the process continues, and it is not ready."""
    away, gone = anyio.Event(), anyio.Event()

    async def serve(*, task_status: anyio.abc.TaskStatus[EmbeddedServer]) -> None:
        async with EmbeddedServer(ServerSettings(store_dir=tmp_path / "bus")) as server:
            task_status.started(server)
            await away.wait()
        gone.set()

    async with anyio.create_task_group() as tasks:
        server = await tasks.start(serve)
        async with lone_gateway(tmp_path, server, anyio.Event()) as worker, http_to(worker) as http:
            away.set()
            await gone.wait()
            response = await http.post(NEW, json={"content": "hi"})
            assert response.status_code == 503
            error = msgspec.json.decode(response.content, type=Error)
            assert error.message == FIXED_SENTENCES[ErrorCode.ENGINE_UNAVAILABLE]
            assert (await http.get("/healthz")).status_code == 200
            ready = await http.get("/readyz")
            assert ready.status_code == 503
            assert msgspec.json.decode(ready.content, type=Readiness).checks["bus"] == "missing"


async def test_without_memory_nothing_is_accepted(tmp_path: Path) -> None:
    """No worker can check that the block exists: 503, the inbox stays empty, and it is not ready."""
    async with (
        EmbeddedServer(ServerSettings(store_dir=tmp_path / "bus")) as server,
        lone_gateway(tmp_path, server, anyio.Event()) as worker,
        http_to(worker) as http,
    ):
        response = await http.post(NEW, json={"content": "hi"})
        assert (response.status_code, response.json()["code"]) == (503, "engine_unavailable")
        assert await worker.context.bus.last(INBOX) is None
        reported: list[Readiness] = []

        async def bus_is_there() -> bool:  # it is given two seconds each time
            reported.append(msgspec.json.decode((await http.get("/readyz")).content, type=Readiness))
            return reported[-1].checks["bus"] == "ok"

        await until(bus_is_there)
        assert {(ready.status, ready.checks["memory"]) for ready in reported} == {("not_ready", "missing")}


async def test_without_a_monitor_messages_are_accepted(own_env: Environment) -> None:
    """No agent alive is fine: the message is on disk and will be answered."""
    own_env.monitor.paused = True
    accepted = await own_env.terminal.send(SendMessage(content="hi"))
    stored = await own_env.bus.last(INBOX, conversation=accepted.conversation)
    assert stored is not None
    ready = await own_env.http.get("/readyz")
    assert (ready.status_code, ready.json()["checks"]["monitor"]) == (503, "missing"), (
        "nobody would answer now"
    )


async def test_a_server_restart_is_survived(own_env: Environment) -> None:
    """nats-server is killed in mid-stream: the reader continues when it is back, without gap or repeat."""
    server = own_env.platform.instance.server
    assert server is not None
    shown = anyio.Event()

    async def script(turn: FakeTurn) -> None:
        await turn.say("one ")
        await shown.wait()
        os.kill(server.pid, signal.SIGKILL)
        await turn.say("two ", offset=4)
        await turn.end("one two ")

    own_env.monitor.script = script
    texts = []
    accepted = await own_env.terminal.send(SendMessage(content="go"))
    with anyio.fail_after(30):
        async for event in own_env.terminal.watch(accepted.conversation, accepted.turn):
            if isinstance(event, TextDelta):
                texts.append(event.text)
                shown.set()
    assert "".join(texts) == "one two "


async def test_a_client_that_repeats_itself_has_one_turn(env: Environment) -> None:
    """The same client id over the bus: the same conversation, turn and message, and one item in the inbox."""
    message = SendMessage(content="hi", client_id="x")
    first, second = await env.terminal.send(message), await env.terminal.send(message)
    assert (first.turn, first.conversation, first.message_id) == (
        second.turn,
        second.conversation,
        second.message_id,
    )
    other = GatewayClient(env.bus, "telegram")
    assert (await other.send(message)).conversation != first.conversation, "a channel speaks for itself only"

    async def both() -> bool:
        return len(env.monitor.requests) == 2

    await until(both)
    assert {request.channel for request in env.monitor.requests} == {"terminal", "telegram"}
    later = await env.terminal.send(message)
    assert (later.turn, later.duplicate) == (first.turn, True)


async def test_too_large_over_the_bus(env: Environment) -> None:
    """The limit holds for channels as well, with a sentence for people."""
    with pytest.raises(RemoteFault) as refused:
        await env.terminal.send(SendMessage(content="x" * 1_000_001))
    assert refused.value.code == ErrorCode.TOO_LARGE


async def test_a_missing_answer_times_out(nats: Bus) -> None:
    """Without a gateway the client reports this, with a hint."""
    with pytest.raises(Unavailable, match="No gateway answers") as refused:
        await GatewayClient(nats, "terminal", timeout=0.3).blocks()
    assert "trunkline up" in refused.value.hint


@pytest.fixture
async def nats(tmp_path: Path) -> AsyncIterator[Bus]:
    config = load_config(tmp_path, environ=clean_environ())
    async with EmbeddedServer(ServerSettings(store_dir=tmp_path / "bus")) as server:
        settings = bus_settings(config, url=server.url, user=server.user, password=server.password)
        async with connect(settings) as bus:
            yield bus


async def test_a_draining_gateway_ends_its_readers(tmp_path: Path) -> None:
    """At a drain streams end cleanly, so clients reconnect elsewhere with their last id; nothing hangs."""
    async with (
        platform(tmp_path, workers=("gateway", "memory")) as running,
        httpx.AsyncClient(base_url=running.url, headers={"x-api-key": running.token}, timeout=60) as http,
        http.stream("POST", NEW, json={"content": "hi"}) as response,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(running.instance.workers["gateway"].drain)
        with anyio.fail_after(60):
            assert [event async for event in events_in(response)] == []


async def test_a_restarted_gateway_finds_its_turns(tmp_path: Path) -> None:
    """The gateway holds no accepted message: after a restart the conversation is there."""
    async with platform(tmp_path, workers=("gateway", "memory")) as running:
        accepted = await GatewayClient(running.bus, "terminal").send(SendMessage(content="hi"))
    async with platform(tmp_path, workers=("gateway", "memory")) as running:
        client = GatewayClient(running.bus, "terminal")
        assert (await client.turn(accepted.turn)).status == "queued"
        view = await client.conversation(accepted.conversation)
        assert [message.content for message in view.messages] == ["hi"]
        assert view.running == accepted.turn


async def test_the_contract_is_served(own_env: Environment) -> None:
    """``/openapi.json`` describes every route that there is, and every reference in it leads somewhere."""
    served = (await own_env.http.get("/openapi.json")).json()
    assert served == msgspec.json.decode(msgspec.json.encode(openapi_document()))
    for method, path, *_ in OPERATIONS:
        response = await own_env.http.request(method, re.sub(r"{\w+}", "x", path), content=b"!")
        assert response.status_code != 405, (method, path)
    text = msgspec.json.encode(served).decode()
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in served["components"]["schemas"]


async def test_other_methods_are_refused(env: Environment) -> None:
    """A method that a path does not know is 405 in the usual shape. ``Allow`` has the methods of all its routes."""
    response = await env.http.put("/conversations", json={})
    assert response.status_code == 405 and response.headers["allow"] == "GET, HEAD"
    several = await env.http.put("/api/blocks/main")
    assert several.headers["allow"] == "DELETE, GET, HEAD, PATCH"
    assert (await env.http.put("/v1/responses/compact")).headers["allow"] == "POST"
    assert msgspec.json.decode(response.content, type=Error).code == "invalid_request"
