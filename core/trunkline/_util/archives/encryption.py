"""Encryption of archives in the age format (age-encryption.org/v1), so that the standard ``age`` tool decrypts them.

Keys (``age1…``, ``ssh-…``) are handled by the library ``pyrage``. For passphrases ``pyrage`` would keep the whole
archive in memory. So this module implements the recipient type scrypt and the payload stream by the specification
C2SP ``age.md``, with the primitives of ``cryptography``. Both libraries are imported on first use.
"""

# pyrage has no stubs, and its module is native code.
# pyright: reportAttributeAccessIssue=false

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from trunkline.errors import TrunklineError

MAGIC = b"age-encryption.org/v1\n"
LABEL = b"age-encryption.org/v1/scrypt"
SCRYPT_WORK = 18
"""The binary logarithm of scrypt's cost factor, as in ``age``. Each attempt with a passphrase takes about a second
and 256 MB."""

MAX_SCRYPT_WORK = 21
"""The highest work factor that is accepted when an archive is decrypted."""

CHUNK_BYTES = 64 * 1024
_SEAL = 16
_HEADER = re.compile(
    rb"age-encryption\.org/v1\n-> scrypt ([A-Za-z0-9+/]{22}) ([1-9][0-9]?)\n([A-Za-z0-9+/]{43})\n"
    rb"--- ([A-Za-z0-9+/]{43})\n"
)


class ArchiveEncryptionError(TrunklineError):
    """An archive cannot be encrypted or decrypted with the given keys or passphrase."""


class Recipients(msgspec.Struct, frozen=True, kw_only=True):
    """The recipients of an archive: the public keys of people who can decrypt it, or a passphrase, but not both."""

    recipients: tuple[str, ...] = ()
    passphrase: str | None = None


class DecryptionKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The means to decrypt an archive: identity files, as ``age-keygen`` and ``ssh-keygen`` write them, or a
    passphrase.
    """

    identities: tuple[Path, ...] = ()
    passphrase: str | None = None


def is_encrypted(file: Path) -> bool:
    """Report whether a file is in the age format. Raises OSError."""
    with file.open("rb") as source:
        return source.read(len(MAGIC)) == MAGIC


def needs_passphrase(file: Path) -> bool:
    """Report whether a passphrase decrypts the file. Raises OSError."""
    with file.open("rb") as source:
        return source.read(len(MAGIC) + 10).startswith(MAGIC + b"-> scrypt ")


def encrypt(source: BinaryIO, target: BinaryIO, to: Recipients) -> None:
    """Encrypt the content of ``source`` into ``target`` for the recipients, in pieces.

    Raises:
        ArchiveEncryptionError: a recipient is not valid, or there is no recipient.
        OSError: reading or writing failed.
    """
    if to.passphrase is not None:
        _lock_by_passphrase(source, target, to.passphrase)
        return
    recipients = [_recipient(text) for text in to.recipients]
    if not recipients:
        raise ArchiveEncryptionError(
            "The archive has no recipient, so it could not be opened.",
            hint="Name a recipient, or give a passphrase.",
        )
    import pyrage

    pyrage.encrypt_io(source, target, recipients)


def decrypt(source: BinaryIO, target: BinaryIO, keys: DecryptionKeys) -> None:
    """Decrypt the content of ``source`` into ``target``. After an error, discard the content of ``target``.

    Raises:
        ArchiveEncryptionError: the keys do not match the archive, or the archive is damaged.
        OSError: reading or writing failed.
    """
    if keys.passphrase is not None:
        _unlock_by_passphrase(source, target, keys.passphrase)
        return
    import pyrage

    identities = [identity for file in keys.identities for identity in _identities(file)]
    try:
        pyrage.decrypt_io(source, target, identities)
    except pyrage.DecryptError as error:
        raise _wrong("none of the keys decrypts it, or it is damaged") from error


# Keys ----------------------------------------------------------------------------------------------------------


def _recipient(text: str) -> object:
    import pyrage

    try:
        kind = pyrage.ssh if text.startswith("ssh-") else pyrage.x25519
        return kind.Recipient.from_str(text)
    except pyrage.RecipientError as error:
        raise ArchiveEncryptionError(
            f"{text[:80]!r} is not a recipient.",
            hint="A recipient begins with age1 or ssh-, as age-keygen -y prints it.",
        ) from error


def _identities(file: Path) -> Sequence[object]:
    import pyrage

    try:
        data = file.read_bytes()
        if b"PRIVATE KEY-----" in data:
            return [pyrage.ssh.Identity.from_buffer(data)]
        lines = [line.strip() for line in data.decode("ascii").splitlines()]
        return [pyrage.x25519.Identity.from_str(line) for line in lines if line and not line.startswith("#")]
    except OSError as error:
        raise ArchiveEncryptionError(
            f"{file} cannot be read: {(error.strerror or 'failed').lower()}."
        ) from error
    except (pyrage.IdentityError, UnicodeDecodeError) as error:
        raise ArchiveEncryptionError(
            f"{file} contains no identity.", hint="Make one with: age-keygen -o key.txt"
        ) from error


# Passphrases -----------------------------------------------------------------------------------------------------


def _lock_by_passphrase(source: BinaryIO, target: BinaryIO, passphrase: str) -> None:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    if not passphrase:
        raise ArchiveEncryptionError("The passphrase is empty.")
    key, salt, nonce = os.urandom(16), os.urandom(16), os.urandom(16)
    sealed = ChaCha20Poly1305(_scrypt(passphrase, salt, SCRYPT_WORK)).encrypt(bytes(12), key, None)
    header = MAGIC + b"-> scrypt %s %d\n%s\n---" % (_text(salt), SCRYPT_WORK, _text(sealed))
    target.write(header + b" " + _text(_mac(key, header)) + b"\n" + nonce)
    seal = ChaCha20Poly1305(_derived(key, nonce, b"payload"))
    for number, piece, last in _pieces(source, CHUNK_BYTES):
        target.write(seal.encrypt(_nonce(number, last), piece, None))


def _unlock_by_passphrase(source: BinaryIO, target: BinaryIO, passphrase: str) -> None:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    head = b"".join(source.readline(256) for _ in range(4))
    found = _HEADER.fullmatch(head)
    if found is None:
        raise _wrong("it is not encrypted with a passphrase, or is damaged")
    salt, work, sealed, mac = _bytes(found[1]), int(found[2]), _bytes(found[3]), _bytes(found[4])
    if work > MAX_SCRYPT_WORK:
        raise _wrong("deriving the key from the passphrase would take too long")
    try:
        key = ChaCha20Poly1305(_scrypt(passphrase, salt, work)).decrypt(bytes(12), sealed, None)
        if not hmac.compare_digest(mac, _mac(key, head[: head.rindex(b" ")])):
            raise _wrong("it is damaged")
        opened = ChaCha20Poly1305(_derived(key, source.read(16), b"payload"))
    except InvalidTag as error:
        raise _wrong("the passphrase does not match") from error
    try:
        for number, piece, last in _pieces(source, CHUNK_BYTES + _SEAL):
            target.write(opened.decrypt(_nonce(number, last), piece, None))
    except InvalidTag as error:
        raise _wrong("it is damaged or truncated") from error


def _pieces(source: BinaryIO, size: int) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the pieces of a file with their numbers, and whether each is the last. There is at least one piece."""
    number, piece = 0, source.read(size)
    while True:
        following = source.read(size) if len(piece) == size else b""
        yield number, piece, not following
        if not following:
            return
        number, piece = number + 1, following


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + (b"\1" if last else b"\0")


def _scrypt(passphrase: str, salt: bytes, work: int) -> bytes:
    most = 128 * 8 * 2**work + 64 * 1024 * 1024
    data = passphrase.encode("utf-8", "surrogateescape")
    return hashlib.scrypt(data, salt=LABEL + salt, n=2**work, r=8, p=1, maxmem=most, dklen=32)


def _derived(key: bytes, salt: bytes, purpose: bytes) -> bytes:
    """Derive 32 bytes by HKDF with SHA-256."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=32, salt=salt, info=purpose).derive(key)


def _mac(key: bytes, header: bytes) -> bytes:
    return hmac.digest(_derived(key, b"", b"header"), header, "sha256")


def _text(data: bytes) -> bytes:
    return base64.b64encode(data).rstrip(b"=")


def _bytes(text: bytes) -> bytes:
    return base64.b64decode(text + b"=" * (-len(text) % 4))


def _wrong(why: str) -> ArchiveEncryptionError:
    return ArchiveEncryptionError(f"The archive cannot be opened: {why}.", hint="Nothing was changed.")
