"""An authenticator in software, with the browser in front of it. Unlike a browser it says whatever a test asks for."""

import hashlib
import os
from base64 import urlsafe_b64decode
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2.cose import ES256
from fido2.utils import websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

FLAGS = AuthenticatorData.FLAG


@dataclass
class Passkey:
    """One passkey. A test may change what the next signature states."""

    origin: str
    host: str = "localhost"
    counter: int = 1
    flags: AuthenticatorData.FLAG = FLAGS.UP | FLAGS.UV
    is_embedded: bool = False
    user: bytes = b""
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    credential: bytes = field(default_factory=lambda: os.urandom(16))

    def register(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a registration for the gateway's options."""
        self.user = _decoded(options["user"]["id"])
        data = AttestedCredentialData.create(
            Aaguid.NONE, self.credential, ES256.from_cryptography_key(self.key.public_key())
        )
        signed = self._data(self.flags | FLAGS.AT, data)
        client = self._client(CollectedClientData.TYPE.CREATE, options)
        attestation = AttestationObject.create("none", signed, {})
        response = {
            "clientDataJSON": websafe_encode(client),
            "attestationObject": websafe_encode(attestation),
        }
        self.counter += 1
        return self._body(options, response)

    def sign_in(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a sign-in for the gateway's options."""
        signed = self._data(self.flags)
        client = self._client(CollectedClientData.TYPE.GET, options)
        signature = self.key.sign(signed + client.hash, ec.ECDSA(hashes.SHA256()))
        response = {
            "clientDataJSON": websafe_encode(client),
            "authenticatorData": websafe_encode(signed),
            "signature": websafe_encode(signature),
            "userHandle": websafe_encode(self.user),
        }
        self.counter += 1
        return self._body(options, response)

    def _data(self, flags: AuthenticatorData.FLAG, made: bytes = b"") -> AuthenticatorData:
        host = hashlib.sha256(self.host.encode()).digest()
        return AuthenticatorData.create(host, flags, self.counter, made)

    def _client(self, kind: str, options: dict[str, Any]) -> CollectedClientData:
        challenge = _decoded(options["challenge"])
        return CollectedClientData.create(kind, challenge, self.origin, cross_origin=self.is_embedded)

    def _body(self, options: dict[str, Any], response: dict[str, str]) -> dict[str, Any]:
        id = websafe_encode(self.credential)
        credential = {
            "id": id, "rawId": id, "type": "public-key", "response": response, "clientExtensionResults": {},
        }  # fmt: skip
        return {"challenge": _decoded(options["challenge"]).decode(), "credential": credential}


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(f"{text}==")
