"""The hub's certificate authority and the certificate of its leaf listener. Files in one folder, private keys
mode 0600."""

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from trunkline._util.private_folders import make_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, GeneralName

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
    known = _names(folder / LEAF_CERTIFICATE) if (folder / LEAF_CERTIFICATE).exists() else ()
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
    name = _name("Trunkline hub")
    usage = _usage(sign=True)
    builder = _builder(name, name, key).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    certificate = builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())
    _write(folder / AUTHORITY_KEY, _secret(key))
    _write(folder / AUTHORITY, _public(certificate))


def _make_leaf_certificate(folder: Path, addresses: tuple[str, ...]) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    authority = x509.load_pem_x509_certificate((folder / AUTHORITY).read_bytes())
    signer = serialization.load_pem_private_key((folder / AUTHORITY_KEY).read_bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([_general(address) for address in addresses])
    builder = _builder(_name("Trunkline door"), authority.subject, key).add_extension(names, critical=False)
    certificate = builder.add_extension(_usage(sign=False), critical=True).sign(signer, hashes.SHA256())
    _write(folder / LEAF_KEY, _secret(key))
    _write(folder / LEAF_CERTIFICATE, _public(certificate))


def _builder(name: object, issuer: object, key: "EllipticCurvePrivateKey"):  # type: ignore[no-untyped-def]
    from cryptography import x509

    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(issuer)  # type: ignore[arg-type]
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + LIFE)


def _usage(*, sign: bool):  # type: ignore[no-untyped-def]
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not sign, key_cert_sign=sign, crl_sign=sign, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _name(text: str):  # type: ignore[no-untyped-def]
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(address: str) -> "GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _names(file: Path) -> tuple[str, ...]:
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return tuple(str(one.value) for one in found)


def _public(certificate: "Certificate") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _secret(key: "EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(file: Path, content: bytes) -> None:
    """Write a file atomically, readable by the owner only."""
    draft = file.with_suffix(f"{file.suffix}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
        target.write(content)
        target.flush()
        os.fsync(target.fileno())
    draft.replace(file)
