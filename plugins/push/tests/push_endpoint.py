"""A push service of a vendor, and a browser that reads what it is given by the rules of RFC 8291 and RFC 8292."""

import datetime
import json
import ssl
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import h11
from anyio.abc import ByteStream
from anyio.streams.tls import TLSListener
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from trunkline.api.egress import HostGuard
from trunkline.api.gateway import PushTarget

HOST = "push.test"
PATH = "/send/a-capability-that-no-log-has"


def base64url(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def unbase64url(text: str) -> bytes:
    return urlsafe_b64decode(f"{text}==")


def point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )


def decrypt(body: bytes, key: ec.EllipticCurvePrivateKey, auth: bytes) -> bytes:
    """Return the content of a message, with its padding removed, as RFC 8291 and RFC 8188 have it."""
    salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
    sender, cipher = body[21 : 21 + length], body[21 + length :]
    assert len(cipher) <= size
    shared = key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
    info = b"WebPush: info\0" + point(key) + sender
    material = HKDF(hashes.SHA256(), 32, auth, info).derive(shared)
    secret = HKDF(hashes.SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(material)
    nonce = HKDF(hashes.SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(material)
    content, mark, _ = AESGCM(secret).decrypt(nonce, cipher, None).rstrip(b"\0").rpartition(b"\x02")
    assert mark == b"\x02"
    return content


def verify_vapid(header: str, audience: str) -> str:
    """Check the signature of a request, and return the key that it names."""
    scheme, _, rest = header.partition(" ")
    fields = dict(part.strip().split("=", 1) for part in rest.split(","))
    signed, _, signature = fields["t"].rpartition(".")
    raw = unbase64url(signature)
    encoded = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), unbase64url(fields["k"]))
    key.verify(encoded, signed.encode(), ec.ECDSA(hashes.SHA256()))
    head, claims = (json.loads(unbase64url(part)) for part in signed.split("."))
    assert (scheme, head["alg"], claims["aud"]) == ("vapid", "ES256", audience)
    assert time.time() < claims["exp"] <= time.time() + 86_400
    return fields["k"]


@dataclass
class Pushed:
    """A request that the service received."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Browser:
    """A browser with a subscription at the service."""

    origin: str
    path: str = PATH
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    auth: bytes = b"sixteen bytes !!"

    @property
    def target(self) -> PushTarget:
        return PushTarget(endpoint=f"{self.origin}{self.path}", p256dh=point(self.key), auth=self.auth)

    @property
    def json(self) -> dict[str, Any]:
        """What ``PushSubscription.toJSON`` has."""
        keys = {"p256dh": base64url(point(self.key)), "auth": base64url(self.auth)}
        return {"endpoint": self.target.endpoint, "keys": keys}

    def read(self, pushed: Pushed) -> dict[str, Any]:
        """Return a notice, after its signature was checked."""
        verify_vapid(pushed.headers["authorization"], self.origin)
        return dict(json.loads(decrypt(pushed.body, self.key, self.auth)))


@dataclass
class PushEndpoint:
    """The service. ``statuses`` are the answers to the next requests, 201 after them."""

    port: int
    tls: ssl.SSLContext
    received: list[Pushed] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"https://{HOST}:{self.port}"

    def guard(self) -> HostGuard:
        """A guard that permits this service and nothing else besides the internet."""

        async def resolve(host: str, port: int) -> list[str]:
            return ["127.0.0.1"] if host == HOST else ["10.0.0.7"]

        return HostGuard([f"{HOST}:{self.port}"], resolve=resolve)

    async def wait(self, number: int) -> list[Pushed]:
        """Return what was received, as soon as there are this many requests."""
        with anyio.fail_after(20):
            while len(self.received) < number:  # noqa: ASYNC110  the server has no event for it
                await anyio.sleep(0.02)
        return self.received

    async def serve(self, stream: ByteStream) -> None:
        connection, body, request = h11.Connection(h11.SERVER), b"", None
        async with stream:
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    connection.receive_data(await stream.receive())
                elif isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                else:
                    break
            assert request is not None
            headers = {name.decode(): value.decode() for name, value in request.headers}
            self.received.append(Pushed(request.target.decode(), headers, body))
            status = self.statuses.pop(0) if self.statuses else 201
            fields = [("Location", f"{self.origin}/elsewhere"), ("Content-Length", "0")]
            await stream.send(connection.send(h11.Response(status_code=status, headers=fields)) or b"")


@asynccontextmanager
async def push_endpoint(folder: Path) -> AsyncIterator[PushEndpoint]:
    """A running service."""
    client, server = certificates(folder)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    endpoint = PushEndpoint(port, client)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(TLSListener(listener, server, standard_compatible=False).serve, endpoint.serve)
        yield endpoint
        tasks.cancel_scope.cancel()


def certificates(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return what a client trusts, and what the service shows."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    signed = (
        x509.CertificateBuilder()
        .subject_name(who).issuer_name(who).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - day).not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private = key.private_bytes(encoding, form, serialization.NoEncryption())
    pem = folder / "push.pem"
    pem.write_bytes(signed.public_bytes(encoding) + private)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(pem)
    return ssl.create_default_context(cafile=str(pem)), server
