"""The certificate and the private key with which a server of its own speaks TLS, read from their files."""

import logging
import ssl
import stat
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from trunkline.errors import ConfigError
from trunkline.runtime.certificate_files import names_of

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

log = logging.getLogger(__name__)

CERTIFICATE, KEY = "gateway.tls_certificate", "gateway.tls_key"
"""The settings with the paths."""


@dataclass(slots=True)
class ServerCertificate:
    """A certificate, followed by those between it and its authority, and its key, both in PEM."""

    certificate: Path
    key: Path
    context: ssl.SSLContext = field(default_factory=lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    """The context of new connections, which accepts TLS 1.2 and later."""
    _seen: tuple[int, ...] = ()
    _problem: str = ""

    @classmethod
    def read(cls, certificate: Path, key: Path) -> "ServerCertificate":
        """Return the files after reading them.

        Raises:
            ConfigError: a file is missing, cannot be read or is not PEM; the key is not that of the certificate, has a
                password, or can be read by every user of the machine.
        """
        files = cls(certificate, key)
        files._load()
        return files

    @property
    def is_self_signed(self) -> bool:
        """Report whether no authority vouches for the certificate."""
        found = self._certificate()
        return found.issuer == found.subject

    @property
    def expires(self) -> datetime:
        """The end of the certificate."""
        return self._certificate().not_valid_after_utc.astimezone(UTC)

    @property
    def names(self) -> tuple[str, ...]:
        """The host names and IP addresses of the certificate."""
        return names_of(self.certificate)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the certificate, as browsers show it: pairs of hexadecimal digits with colons."""
        from cryptography.hazmat.primitives import hashes

        return self._certificate().fingerprint(hashes.SHA256()).hex(":").upper()

    def reload(self) -> bool:
        """Use the files for new connections if they changed, for example because the certificate was renewed. Return
        whether they changed. While they cannot be used, the former ones stay in use, and the reason is logged once.
        """
        try:
            if self._stamp() == self._seen:
                return False
            self._load()
        except (ConfigError, OSError) as error:
            if str(error) != self._problem:
                log.error("the former certificate stays in use: %s", error)
            self._problem = str(error)
            return False
        self._problem = ""
        return True

    def _load(self) -> None:
        for setting, file in ((CERTIFICATE, self.certificate), (KEY, self.key)):
            _require_readable(setting, file)
        if self.key.stat().st_mode & stat.S_IRWXO:
            raise ConfigError(
                f"Every user of this machine can read {self.key} ({KEY}).",
                hint=f"Run: chmod 600 {self.key}. If others could have read it, get a new key.",
            )
        self._seen = self._stamp()
        try:
            self._certificate()
            # First into a context of no use: a key that does not fit would leave the one in use without a key. The
            # prompt of OpenSSL for a password would wait for a person.
            for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):
                context.load_cert_chain(self.certificate, self.key, password=_refuse_password)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(
                f"The certificate {self.certificate} cannot be used with the key {self.key}: {_reason(error)}.",
                hint=f"{CERTIFICATE} and {KEY} must be a certificate in PEM and its own key without a password. "
                "Make both: trunkline certificate",
            ) from error

    def _certificate(self) -> "Certificate":
        from cryptography import x509

        return x509.load_pem_x509_certificate(self.certificate.read_bytes())

    def _stamp(self) -> tuple[int, ...]:
        found = (self.certificate.stat(), self.key.stat())
        return tuple(number for one in found for number in (one.st_ino, one.st_mtime_ns))


def _require_readable(setting: str, file: Path) -> None:
    try:
        with file.open("rb"):
            return
    except OSError as error:
        raise ConfigError(
            f"{file} ({setting}) cannot be read: {(error.strerror or str(error)).lower()}.",
            hint="Correct the path, or make a certificate: trunkline certificate",
        ) from error


def _refuse_password() -> str:
    raise ValueError("the key has a password")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return "the key is another certificate's"
    if isinstance(error, ssl.SSLError):
        return (error.reason or "it is not PEM").replace("_", " ").lower()
    return str(error).partition(".")[0] or "it is not PEM"
