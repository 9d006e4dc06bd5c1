"""The hub's certificate authority and the certificate of its leaf listener. Files in one folder, private keys
mode 0600."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from trunkline._util.private_folders import make_private
from trunkline.runtime.certificate_files import (
    certificate_pem,
    common_name,
    general_name,
    key_pem,
    key_usage,
    names_of,
    write_private,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

AUTHORITY, AUTHORITY_KEY = "authority.pem", "authority.key"
LEAF_CERTIFICATE, LEAF_KEY = "door.pem", "door.key"
LIFE = timedelta(days=3650)
"""The lifetime of certificates. Remotes pin the authority, so nothing renews it; a remote is revoked by
removing its key."""


def ensure_leaf_certificate(folder: Path, addresses: tuple[str, ...] = ()) -> bool:
    """Ensure that the leaf listener has a certificate for these names or IP addresses, besides its present
    ones.

    Creates the authority when there is none. Returns whether a new certificate was written.
    """
    known = names_of(folder / LEAF_CERTIFICATE) if (folder / LEAF_CERTIFICATE).exists() else ()
    wanted = tuple(dict.fromkeys((*known, "localhost", "127.0.0.1", *addresses)))
    if set(wanted) == set(known):
        return False
    make_private(folder)
    if not (folder / AUTHORITY).exists():
        _make_authority(folder)
    _make_leaf_certificate(folder, wanted)
    return True


def fingerprint(certificate: bytes) -> bytes:
    """Return the SHA-256 of a certificate in DER."""
    import hashlib

    return hashlib.sha256(certificate).digest()


def _make_authority(folder: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = common_name("Trunkline hub")
    usage = key_usage(sign=True)
    builder = _builder(name, name, key).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    certificate = builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())
    write_private(folder / AUTHORITY_KEY, key_pem(key))
    write_private(folder / AUTHORITY, certificate_pem(certificate))


def _make_leaf_certificate(folder: Path, addresses: tuple[str, ...]) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    authority = x509.load_pem_x509_certificate((folder / AUTHORITY).read_bytes())
    signer = serialization.load_pem_private_key((folder / AUTHORITY_KEY).read_bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([general_name(address) for address in addresses])
    builder = _builder(common_name("Trunkline door"), authority.subject, key).add_extension(
        names, critical=False
    )
    certificate = builder.add_extension(key_usage(sign=False), critical=True).sign(signer, hashes.SHA256())
    write_private(folder / LEAF_KEY, key_pem(key))
    write_private(folder / LEAF_CERTIFICATE, certificate_pem(certificate))


def _builder(name: object, issuer: object, key: "EllipticCurvePrivateKey"):  # type: ignore[no-untyped-def]
    from cryptography import x509

    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(issuer)  # type: ignore[arg-type]
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + LIFE)
