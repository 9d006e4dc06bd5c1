"""Encrypts a notice for one browser: Web Push's message encryption (RFC 8291) in one record of aes128gcm (RFC 8188).
No I/O.
"""

import os

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from trunkline.api.gateway import PushTarget

RECORD_SIZE = 4096
"""The size of a record, and the largest body that every vendor's service accepts."""

PADDED_BYTES = 1024
"""The size to which shorter content is padded, so that the vendor does not learn how long the name of a block is."""

LAST_RECORD = b"\x02"
"""The mark behind the content of the last record. Padding follows it."""


def encrypt(content: bytes, target: PushTarget) -> bytes:
    """Return the body of a push request, which only the browser of ``target`` can read.

    Raises:
        ValueError: the browser's public key is not a point of P-256, or the content is too long.
    """
    own = ec.generate_private_key(ec.SECP256R1())
    own_public = encode_point(own.public_key())
    shared = own.exchange(ec.ECDH(), read_point(target.p256dh))
    material = _derive(shared, target.auth, b"WebPush: info\0" + target.p256dh + own_public, 32)
    salt = os.urandom(16)
    key = _derive(material, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(material, salt, b"Content-Encoding: nonce\0", 12)
    padded = (content + LAST_RECORD).ljust(PADDED_BYTES, b"\0")
    header = salt + RECORD_SIZE.to_bytes(4, "big") + len(own_public).to_bytes(1, "big") + own_public
    body = header + AESGCM(key).encrypt(nonce, padded, None)
    if len(body) > RECORD_SIZE:
        raise ValueError(f"A notice of {len(content)} bytes does not fit into one record.")
    return body


def read_point(encoded: bytes) -> ec.EllipticCurvePublicKey:
    """Return the public key of an uncompressed point. Raises ValueError if it is not on the curve P-256."""
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), encoded)


def encode_point(key: ec.EllipticCurvePublicKey) -> bytes:
    """Return a public key as an uncompressed point of 65 bytes."""
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derive(material: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(material)
