"""Signs push requests, so that a subscription accepts this home's only: VAPID (RFC 8292). No I/O."""

import json
import time
from base64 import urlsafe_b64encode

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from trunkline_push.encryption import encode_point

VALID_SECONDS = 12 * 3_600
"""Seconds for which a signature counts. The RFC allows a day at most."""

CONTACT = "mailto:trunkline@example.com"
"""The contact that vendors ask for. It is nobody's, because the owner's address would tell the vendor who it is."""

CURVE_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The number of points of P-256."""


def signing_key(secret: str) -> ec.EllipticCurvePrivateKey:
    """Return the key of a home. The same secret gives the same key, because browsers bind subscriptions to it."""
    # 48 bytes instead of 32, so that taking the remainder prefers no key in a way that matters (FIPS 186-5, A.2.1).
    derived = HKDF(SHA256(), 48, None, b"Trunkline push notices: ES256").derive(secret.encode())
    return ec.derive_private_key(int.from_bytes(derived, "big") % (CURVE_ORDER - 1) + 1, ec.SECP256R1())


def authorization(origin: str, key: ec.EllipticCurvePrivateKey) -> str:
    """Return the ``Authorization`` header of a request to a push service, for the service at this origin only."""
    claims = {"aud": origin, "exp": int(time.time()) + VALID_SECONDS, "sub": CONTACT}
    signed = f"{_encoded_json({'typ': 'JWT', 'alg': 'ES256'})}.{_encoded_json(claims)}"
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(SHA256())))
    signature = base64url(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    return f"vapid t={signed}.{signature}, k={base64url(encode_point(key.public_key()))}"


def base64url(content: bytes) -> str:
    """Return bytes in base64url without padding."""
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def _encoded_json(value: dict[str, object]) -> str:
    return base64url(json.dumps(value, separators=(",", ":")).encode())
