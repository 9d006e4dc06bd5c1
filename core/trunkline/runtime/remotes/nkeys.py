"""NATS keys of a user ("nkeys"): Ed25519 in the text form of nats-server. The secret half never leaves its host.

The form: base32 of a prefix, the key and its CRC-16 (XMODEM), as in github.com/nats-io/nkeys.
"""

import base64
import binascii
import os

_USER = 20 << 3
_SEED = 18 << 3


def new_key() -> tuple[str, str]:
    """Return a new pair: the seed (secret, ``SU…``) and the public key (``U…``)."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    secret = os.urandom(32)
    public = Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
    head = bytes((_SEED | _USER >> 5, (_USER & 31) << 3))
    return _text(head + secret), _text(bytes((_USER,)) + public)


def is_public_key(text: str) -> bool:
    """Report whether the text is a user's public key, checksum included."""
    try:
        raw = base64.b32decode(text, casefold=False)
    except (binascii.Error, ValueError):
        return False
    return len(raw) == 35 and raw[0] == _USER and _crc(raw[:-2]) == raw[-2:]


def _text(body: bytes) -> str:
    return base64.b32encode(body + _crc(body)).decode().rstrip("=")


def _crc(body: bytes) -> bytes:
    return binascii.crc_hqx(body, 0).to_bytes(2, "little")
