"""The joining host's side of an enrolment, and the files that the host stores: its key, the hub's authority and the
hub's address."""

import os
import ssl
from pathlib import Path

import anyio
import msgspec
from anyio.streams.tls import TLSAttribute

from trunkline._util.private_folders import make_private
from trunkline._util.toml import SettingsFileError, read_settings
from trunkline.errors import ConfigError, Unavailable
from trunkline.runtime.remotes.certificates import AUTHORITY, fingerprint
from trunkline.runtime.remotes.framing import RefusedByPeer, receive, send
from trunkline.runtime.remotes.handshake import (
    Challenge,
    ChallengeResponse,
    HandshakeTranscript,
    Hello,
    Welcome,
    new_nonce,
    normalize_code,
    proofs_match,
)
from trunkline.runtime.remotes.nkeys import new_key
from trunkline_bus import LeafRemote

JOIN_PORT = 7423
"""The default port of an invitation; the leaf listener has the port below."""

HUB, SEED = "hub.toml", "seed"
ENROLMENT_SECONDS = 20.0


class HubEnrolment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The hub that this host is enrolled at, and the host's name there."""

    name: str
    host: str
    port: int


async def join(folder: Path, host: str, port: int, code: str) -> HubEnrolment:
    """Enrol this host, and store the result in ``folder``.

    Raises:
      ConfigError: the text is not a valid code, or this host is enrolled already.
      Unavailable: the hub cannot be reached, does not recognise the code, or refuses.
    """
    if (folder / HUB).exists():
        raise ConfigError(
            f"This host is enrolled already, see {folder / HUB}.",
            hint="Revoke it on the hub and delete that folder, or set TRUNKLINE_HOME to another home.",
        )
    try:
        code = normalize_code(code)
    except ValueError as error:
        raise ConfigError(f"This is not a code: {error}.", hint="Type it as the hub printed it.") from error
    seed, key = new_key()
    try:
        with anyio.fail_after(ENROLMENT_SECONDS):
            welcome = await _handshake(host, port, code, key)
    except RefusedByPeer as refusal:
        raise Unavailable(f"{host} refused: {refusal}", hint="Ask for a new code on the hub.") from refusal
    except (
        OSError,
        TimeoutError,
        anyio.BrokenResourceError,
        anyio.EndOfStream,
        msgspec.MsgspecError,
    ) as error:
        raise Unavailable(
            f"The hub at {host}:{port} cannot be reached: {str(error) or type(error).__name__}.",
            hint='Is "trunkline remote invite" still running there, and does a firewall allow its port?',
        ) from error
    hub = HubEnrolment(name=welcome.name, host=host, port=welcome.port)
    _store_enrolment(folder, hub, seed, welcome.authority)
    return hub


def leaf_remote(folder: Path) -> LeafRemote:
    """Return the connection to the hub from the stored files. Raises ConfigError when this host is not
    enrolled."""
    hub = read_enrolment(folder)
    return LeafRemote(
        url=f"tls://{_bracketed(hub.host)}:{hub.port}", seed_file=folder / SEED, authority=folder / AUTHORITY,
        domain=hub.name,
    )  # fmt: skip


def read_enrolment(folder: Path) -> HubEnrolment:
    """Return the hub that this host is enrolled at. Raises ConfigError when there is none."""
    try:
        return read_settings(str(folder / HUB), (folder / HUB).read_text(encoding="utf-8"), HubEnrolment)
    except FileNotFoundError as error:
        raise ConfigError(
            "This host is not enrolled anywhere.",
            hint='Run "trunkline remote invite NAME" on the hub, then "trunkline remote join HUB CODE" here.',
        ) from error
    except (OSError, SettingsFileError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{folder / HUB} cannot be used: {error}", hint="Join again with a new code."
        ) from error


async def _handshake(host: str, port: int, code: str, key: str) -> Welcome:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # the proof below authenticates it
    async with await anyio.connect_tcp(
        host, port, tls=True, ssl_context=context, tls_standard_compatible=False
    ) as stream:
        certificate = stream.extra(TLSAttribute.peer_certificate_binary)
        assert certificate is not None
        hello = Hello(new_nonce())
        await send(stream, hello)
        challenge = await receive(stream, Challenge)
        exchange = HandshakeTranscript(
            code=code, certificate=fingerprint(certificate), joiner=hello.nonce, hub=challenge.nonce
        )
        if not proofs_match(challenge.proof, exchange.hub_proof()):
            raise RefusedByPeer("the hub rejected the code. The code is mistyped, or this is not your hub.")
        await send(stream, ChallengeResponse(key, host, exchange.joiner_proof(key, host)))
        return await receive(stream, Welcome)


def _store_enrolment(folder: Path, hub: HubEnrolment, seed: str, authority: str) -> None:
    """Write the files. The file that marks the enrolment as complete is written last."""
    make_private(folder)
    where = f'name = "{hub.name}"\nhost = "{hub.host}"\nport = {hub.port}\n'
    for name, text in ((SEED, f"{seed}\n"), (AUTHORITY, authority), (HUB, where)):
        with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
