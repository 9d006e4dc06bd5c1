"""Enrolling a host: with the code, once, in time, and without a man in the middle."""

import socket
import ssl
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from anyio.streams.tls import TLSListener, TLSStream

from trunkline.errors import ConfigError, Unavailable
from trunkline.runtime.remotes.certificates import LEAF_CERTIFICATE, LEAF_KEY, ensure_leaf_certificate
from trunkline.runtime.remotes.enrolment import JOIN_PORT, join, leaf_remote, read_enrolment
from trunkline.runtime.remotes.handshake import ALPHABET, new_code, normalize_code
from trunkline.runtime.remotes.invitation import MAX_WRONG_PROOFS, Invitation, invite
from trunkline.runtime.remotes.nkeys import is_public_key, new_key
from trunkline.runtime.remotes.registry import Remote, RemoteRegistry

pytestmark = pytest.mark.anyio

HERE = "127.0.0.1"


class Waiting:
    """An invitation that waits. ``ended`` is a remote that was let in, or why none was."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.port = 0
        self.ended: Remote | Exception | None = None


@asynccontextmanager
async def waiting(folder: Path, *, name: str = "laptop", seconds: float = 30.0) -> AsyncIterator[Waiting]:
    """An invitation, until the block is left."""
    found, ready = Waiting(new_code()), anyio.Event()

    def listening(port: int) -> None:
        found.port = port
        ready.set()

    async def wait() -> None:
        invitation = Invitation(name, ("main",), found.code, HERE, 0, 7422)
        try:
            found.ended = await invite(RemoteRegistry(folder), invitation, seconds=seconds, ready=listening)
        except (ConfigError, Unavailable) as error:
            found.ended = error

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        with anyio.fail_after(60):
            await ready.wait()
        yield found
        tasks.cancel_scope.cancel()


async def until(condition: Callable[[], Any]) -> None:
    with anyio.fail_after(60):
        while not condition():  # noqa: ASYNC110 - something of another task
            await anyio.sleep(0.01)


async def test_a_remote_joins_with_the_code(tmp_path: Path) -> None:
    """Both sides store their credentials, for their owner only, and the private key stays where it was made."""
    hub, remote = tmp_path / "hub", tmp_path / "remote"
    async with waiting(hub) as door:
        joined = await join(remote, HERE, door.port, f" {door.code.lower()} ")
        await until(lambda: door.ended)
    assert isinstance(door.ended, Remote)
    assert (joined.name, joined.host, joined.port) == ("laptop", HERE, 7422)
    assert read_enrolment(remote) == joined
    assert RemoteRegistry(hub).all() == (RemoteRegistry(hub).find("laptop"),)
    assert RemoteRegistry(hub).find("laptop") is not None
    assert leaf_remote(remote).url == f"tls://{HERE}:7422"
    for file in (*hub.iterdir(), *remote.iterdir()):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    seed = (remote / "seed").read_text().strip()
    assert all(seed not in file.read_text() for file in hub.iterdir())


async def test_a_code_is_valid_once(tmp_path: Path) -> None:
    """Two come with the same code at the same moment: one is let in, the other refused, and keeps nothing."""
    folders = [tmp_path / "one", tmp_path / "two"]
    refused = []

    async def come(folder: Path) -> None:
        try:
            await join(folder, HERE, door.port, door.code)
        except Unavailable as error:
            refused.append(str(error))

    async with waiting(tmp_path / "hub") as door, anyio.create_task_group() as tasks:
        for folder in folders:
            tasks.start_soon(come, folder)
    assert len(refused) == 1
    assert [(folder / "hub.toml").exists() for folder in folders].count(True) == 1
    assert len(RemoteRegistry(tmp_path / "hub").all()) == 1


async def test_a_wrong_code_learns_nothing_and_may_not_be_tried_often(tmp_path: Path) -> None:
    """The joiner detects that the hub's proof does not match and sends no key; a wrong proof invalidates the code."""
    async with waiting(tmp_path / "hub") as door:
        with pytest.raises(Unavailable, match="rejected the code"):
            await join(tmp_path / "guess", HERE, door.port, new_code())
        for _ in range(MAX_WRONG_PROOFS):
            await _answer_blindly(door.port)
        await until(lambda: door.ended)
        assert isinstance(door.ended, Unavailable)
        with pytest.raises(Unavailable, match="cannot be reached"):
            await join(tmp_path / "late", HERE, door.port, door.code)
    assert RemoteRegistry(tmp_path / "hub").all() == ()
    assert not (tmp_path / "guess").exists()


async def _answer_blindly(port: int) -> None:
    from trunkline.runtime.remotes.framing import RefusedByPeer, receive, send
    from trunkline.runtime.remotes.handshake import Challenge, ChallengeResponse, Hello, new_nonce

    async with await anyio.connect_tcp(
        HERE, port, tls=True, ssl_context=_trusting(), tls_standard_compatible=False
    ) as stream:
        await send(stream, Hello(new_nonce()))
        await receive(stream, Challenge)
        await send(stream, ChallengeResponse(new_key()[1], HERE, "0" * 64))
        with pytest.raises(RefusedByPeer):
            await receive(stream, Challenge)


async def test_a_code_expires_when_no_remote_joins(tmp_path: Path) -> None:
    """The code is then invalid, and the port is closed."""
    async with waiting(tmp_path / "hub", seconds=0.5) as door:
        await until(lambda: door.ended)
        assert "No host joined in time" in str(door.ended)
        with pytest.raises(Unavailable, match="cannot be reached"):
            await join(tmp_path / "remote", HERE, door.port, door.code)


async def test_a_man_in_the_middle_gets_nothing(tmp_path: Path) -> None:
    """A proxy that ends TLS with a certificate of its own and passes every message on: neither side accepts it."""
    async with waiting(tmp_path / "hub") as door, between(tmp_path / "evil", door.port) as port:
        with pytest.raises(Unavailable, match="rejected the code"):
            await join(tmp_path / "remote", HERE, port, door.code)
    assert RemoteRegistry(tmp_path / "hub").all() == ()
    assert not (tmp_path / "remote").exists()


@asynccontextmanager
async def between(folder: Path, port: int) -> AsyncIterator[int]:
    """Run a man in the middle; yields the port where he imitates the hub."""
    ensure_leaf_certificate(folder, (HERE,))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / LEAF_CERTIFICATE, folder / LEAF_KEY)
    plain = await anyio.create_tcp_listener(local_host=HERE)
    listener = TLSListener(plain.listeners[0], context, standard_compatible=False)

    async def relay(victim: ByteStream) -> None:
        hub = await anyio.connect_tcp(
            HERE, port, tls=True, ssl_context=_trusting(), tls_standard_compatible=False
        )
        async with victim, hub, anyio.create_task_group() as tasks:
            tasks.start_soon(pump, victim, hub, tasks.cancel_scope)
            tasks.start_soon(pump, hub, victim, tasks.cancel_scope)

    async def pump(source: ByteStream, target: ByteStream, ended: anyio.CancelScope) -> None:
        try:
            while True:
                await target.send(await source.receive())
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, ssl.SSLError):
            ended.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, relay)
        yield listener.listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.cancel_scope.cancel()
    await listener.aclose()


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@pytest.mark.parametrize(
    "bytes_sent", [b"", b"GET / HTTP/1.1\r\n\r\n", b'{"type":"answer.v1"}\n', b"x" * 100_000]
)
async def test_an_invalid_handshake_ends_only_its_connection(tmp_path: Path, bytes_sent: bytes) -> None:
    """A client that sends other data, or hangs up, affects no one else: the code still works."""
    async with waiting(tmp_path / "hub") as door:
        stream = await anyio.connect_tcp(
            HERE, door.port, tls=True, ssl_context=_trusting(), tls_standard_compatible=False
        )
        assert isinstance(stream, TLSStream)
        await stream.send(bytes_sent)
        await anyio.aclose_forcefully(stream)
        with socket.create_connection((HERE, door.port)):  # and one that never begins to talk
            await join(tmp_path / "remote", HERE, door.port, door.code)


async def test_an_existing_remote_is_not_replaced(tmp_path: Path) -> None:
    """A taken name, an enrolled host and an invalid code are refused at once."""
    async with waiting(tmp_path / "hub") as door:
        await join(tmp_path / "remote", HERE, door.port, door.code)
        await until(lambda: door.ended)
    with pytest.raises(ConfigError, match="There is a remote called laptop already"):
        await invite(
            RemoteRegistry(tmp_path / "hub"), Invitation("laptop", ("main",), new_code(), HERE, 0, 7422), seconds=1,
            ready=lambda port: None,
        )  # fmt: skip
    with pytest.raises(ConfigError, match="enrolled already"):
        await join(tmp_path / "remote", HERE, JOIN_PORT, new_code())
    with pytest.raises(ConfigError, match="not a code"):
        await join(tmp_path / "other", HERE, JOIN_PORT, "1234")


@pytest.mark.parametrize(
    "change",
    [
        'name = "desk"',
        'key = "UAAA"',
        'blocks = ["a b"]',
        'blocks = ["main"]\nmore = 1',
        'key = "x", {evil: yes}"',
    ],
)
def test_a_wrongly_edited_registry_file_admits_no_remote(tmp_path: Path, change: str) -> None:
    """The registry becomes part of the server's configuration, so its whole content is checked."""
    lines = {
        "name": 'name = "laptop"', "key": f'key = "{new_key()[1]}"', "blocks": 'blocks = ["main"]',
        "enrolled_at": "enrolled_at = 2026-01-01T00:00:00Z",
    }  # fmt: skip
    file = tmp_path / "laptop.toml"
    file.write_text("\n".join(lines.values()))
    assert RemoteRegistry(tmp_path).all()
    file.write_text("\n".join({**lines, change.split()[0]: change}.values()))
    with pytest.raises(ConfigError, match="cannot be used"):
        RemoteRegistry(tmp_path).all()


def test_codes_and_keys() -> None:
    """A code has 80 random bits; a key's checksum detects a mistyped one."""
    assert len(ALPHABET) == 32
    assert len(set(ALPHABET)) == 32
    codes = {normalize_code(new_code()) for _ in range(100)}
    assert len(codes) == 100
    assert {len(code) for code in codes} == {16}
    seed, public = new_key()
    assert seed.startswith("SU")
    assert is_public_key(public)
    assert not is_public_key(public[:-1] + ("A" if public[-1] != "A" else "B"))
    assert not is_public_key(seed)
