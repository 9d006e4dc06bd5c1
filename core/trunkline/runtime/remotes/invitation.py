"""The hub's side of an enrolment: a listener for one code that enrols one host."""

import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.abc
import msgspec
from anyio.streams.tls import TLSListener

from trunkline.errors import ConfigError, Unavailable
from trunkline.runtime.remotes.certificates import (
    AUTHORITY,
    LEAF_CERTIFICATE,
    LEAF_KEY,
    ensure_leaf_certificate,
    fingerprint,
)
from trunkline.runtime.remotes.framing import receive, send
from trunkline.runtime.remotes.handshake import (
    Challenge,
    ChallengeResponse,
    EnrolmentRefused,
    HandshakeTranscript,
    Hello,
    Welcome,
    new_nonce,
    proofs_match,
)
from trunkline.runtime.remotes.nkeys import is_public_key
from trunkline.runtime.remotes.registry import Remote, RemoteRegistry

MAX_WRONG_PROOFS = 3
"""The number of wrong proofs after which the code is void."""

CONNECTION_SECONDS = 15.0
MAX_CONNECTIONS = 8


@dataclass(frozen=True, slots=True)
class Invitation:
    """A code for one host. ``port`` is the port of the enrolment, ``leaf_port`` the port of the leaf listener."""

    name: str
    blocks: tuple[str, ...]
    code: str
    host: str
    port: int
    leaf_port: int


async def invite(
    registry: RemoteRegistry, invitation: Invitation, *, seconds: float, ready: Callable[[int], None]
) -> Remote:
    """Wait until one host has joined with the code, and enrol it. ``ready`` is called with the port once it
    listens.

    Raises:
      ConfigError: the name is taken, or the address cannot be listened on.
      Unavailable: no host joined within ``seconds``, or the code was guessed wrongly too often.
    """
    if registry.find(invitation.name) is not None:
        raise ConfigError(
            f"There is a remote called {invitation.name} already.",
            hint=f'Choose another name, or "trunkline remote revoke {invitation.name}" first.',
        )
    ensure_leaf_certificate(registry.folder)
    server = _EnrolmentServer(registry, invitation)
    with anyio.move_on_after(seconds):
        async with (
            await _listener(registry.folder, invitation) as listener,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(listener.serve, server.handle)
            ready(listener.listener.extra(anyio.abc.SocketAttribute.local_port))
            await server.ended.wait()
            tasks.cancel_scope.cancel()
    if server.joined is None:
        why = (
            "There were too many wrong codes"
            if server.wrong >= MAX_WRONG_PROOFS
            else "No host joined in time"
        )
        raise Unavailable(f"{why}, so the code is void.", hint="Run the same command for a new one.")
    return server.joined


async def _listener(folder: Path, invitation: Invitation) -> TLSListener:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(folder / LEAF_CERTIFICATE, folder / LEAF_KEY)
    try:
        plain = await anyio.create_tcp_listener(local_host=invitation.host, local_port=invitation.port)
    except OSError as error:
        raise ConfigError(
            f"Cannot listen on {invitation.host}:{invitation.port}: {error.strerror or error}.",
            hint="Choose another --port, or correct remotes.listen in trunkline.toml.",
        ) from error
    return TLSListener(
        plain.listeners[0], context, standard_compatible=False, handshake_timeout=CONNECTION_SECONDS
    )


class _EnrolmentServer:
    """Handles the connections of joining hosts. ``joined`` is the enrolled host, None before the enrolment."""

    def __init__(self, registry: RemoteRegistry, invitation: Invitation) -> None:
        self.joined: Remote | None = None
        self.wrong = 0
        self.ended = anyio.Event()
        self._registry = registry
        self._invitation = invitation
        self._certificate = _der(registry.folder / LEAF_CERTIFICATE)
        self._slots = anyio.CapacityLimiter(MAX_CONNECTIONS)

    async def handle(self, stream: anyio.abc.ByteStream) -> None:
        """Handle one connection; any error ends only this connection."""
        with suppress(
            anyio.BrokenResourceError,
            anyio.EndOfStream,
            anyio.ClosedResourceError,
            OSError,
            msgspec.MsgspecError,
        ):
            async with stream, self._slots:
                with anyio.move_on_after(CONNECTION_SECONDS):
                    await self._handshake(stream)

    async def _handshake(self, stream: anyio.abc.ByteStream) -> None:
        hello = await receive(stream, Hello)
        exchange = HandshakeTranscript(
            code=self._invitation.code, certificate=self._certificate, joiner=hello.nonce, hub=new_nonce()
        )
        await send(stream, Challenge(exchange.hub, exchange.hub_proof()))
        answer = await receive(stream, ChallengeResponse)
        # No await from here to the end of _admit, so that of two concurrent hosts with the code only one is enrolled.
        if self.ended.is_set() or not proofs_match(
            answer.proof, exchange.joiner_proof(answer.key, answer.address)
        ):
            self._count_wrong()
            return await send(stream, EnrolmentRefused("The code is wrong, or used up."))
        try:
            welcome = self._admit(answer)
        except (ConfigError, ValueError) as error:
            return await send(stream, EnrolmentRefused(str(error)))
        with anyio.CancelScope(shield=True):
            await send(stream, welcome)
        self.ended.set()

    def _admit(self, answer: ChallengeResponse) -> Welcome:
        if self.joined is not None or not is_public_key(answer.key):
            raise ConfigError("The code was used already, or the key is not a valid public key.")
        folder = self._registry.folder
        ensure_leaf_certificate(folder, (answer.address,))
        remote = Remote(
            name=self._invitation.name,
            key=answer.key,
            blocks=self._invitation.blocks,
            enrolled_at=datetime.now(UTC),
        )
        self._registry.add(remote)
        self.joined = remote
        return Welcome(
            name=remote.name, port=self._invitation.leaf_port, authority=(folder / AUTHORITY).read_text()
        )

    def _count_wrong(self) -> None:
        self.wrong += 1
        if self.wrong >= MAX_WRONG_PROOFS:
            self.ended.set()


def _der(file: Path) -> bytes:
    return fingerprint(ssl.PEM_cert_to_DER_cert(file.read_text()))
