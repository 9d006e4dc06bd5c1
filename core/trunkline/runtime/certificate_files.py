"""Parts of X.509 certificates, and their files: what the certificates of remotes and of the gateway have in common."""

import ipaddress
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, GeneralName, KeyUsage, Name


def key_usage(*, sign: bool) -> "KeyUsage":
    """Return the usage of a key that signs certificates, or of one that proves who a server is."""
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not sign, key_cert_sign=sign, crl_sign=sign, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def common_name(text: str) -> "Name":
    """Return a name with a common name only."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def general_name(address: str) -> "GeneralName":
    """Return an IP address or a host name as an alternative name of a certificate."""
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def names_of(file: Path) -> tuple[str, ...]:
    """Return the alternative names of a certificate in a PEM file. Raises OSError and ValueError."""
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return tuple(str(one.value) for one in found)


def certificate_pem(certificate: "Certificate") -> bytes:
    """Return a certificate as PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def key_pem(key: "EllipticCurvePrivateKey") -> bytes:
    """Return a private key as PEM, not encrypted."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def write_private(file: Path, content: bytes) -> None:
    """Write a file atomically, readable by the owner only. Raises OSError."""
    draft = file.with_suffix(f"{file.suffix}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
        target.write(content)
        target.flush()
        os.fsync(target.fileno())
    draft.replace(file)
