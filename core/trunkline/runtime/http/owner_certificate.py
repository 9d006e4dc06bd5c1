"""Makes a certificate that nobody vouches for: encrypted connections in a network without a name and an authority."""

import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from trunkline._util.private_folders import make_private
from trunkline.runtime.certificate_files import (
    certificate_pem,
    common_name,
    general_name,
    key_pem,
    key_usage,
    write_private,
)

FOLDER, CERTIFICATE_FILE, KEY_FILE = "tls", "certificate.pem", "key.pem"
LIFE = timedelta(days=820)
"""The lifetime: iOS and macOS refuse a certificate of more than 825 days."""


def machine_names() -> tuple[str, ...]:
    """Return the names by which this machine is reached, without asking the network."""
    name = socket.gethostname().lower()
    return ("localhost", "127.0.0.1", "::1", name, f"{name}.local")


def make_self_signed(folder: Path, names: Sequence[str]) -> tuple[Path, Path]:
    """Write a certificate for these host names and IP addresses, and its key, and return their paths. Only their owner
    can read them. The key is written first: a crash between the two leaves a pair that is refused, never one that is
    used. Raises OSError, and ValueError for a name that no certificate can have.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    key = ec.generate_private_key(ec.SECP256R1())
    name, now = common_name("Trunkline"), datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(
        now - timedelta(days=1) + LIFE
    )
    alternatives = x509.SubjectAlternativeName([general_name(one) for one in dict.fromkeys(names)])
    for extension, is_critical in (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (key_usage(sign=False), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (alternatives, False),
    ):
        builder = builder.add_extension(extension, critical=is_critical)
    certificate = builder.sign(key, hashes.SHA256())
    make_private(folder)
    write_private(folder / KEY_FILE, key_pem(key))
    write_private(folder / CERTIFICATE_FILE, certificate_pem(certificate))
    return folder / CERTIFICATE_FILE, folder / KEY_FILE
