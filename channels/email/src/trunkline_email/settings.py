"""The section ``[channels.email]`` of ``trunkline.toml``."""

import hashlib
import re
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from trunkline import ConfigError, Secret

PASSWORD = Secret(env="EMAIL_PASSWORD")

Tls = Literal["implicit", "starttls", "none"]
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
Seconds = Annotated[float, msgspec.Meta(ge=0.02, le=1_740)]

_ADDRESS = re.compile(r"[^\s@<>,;:\"\\]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")


class EmailSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[channels.email]``. ``address`` is the address of the mailbox, which is also the sender of every answer.

    ``owners`` are the addresses of the owner. A mail counts as the owner's only if ``authentication_server``, the name
    that your receiving server writes at the beginning of ``Authentication-Results``, confirms its sender by DMARC or an
    aligned DKIM signature. Without it, no mail is accepted. Nothing switches this check off. ``answer_strangers``
    tells an authenticated stranger once that the mailbox is private.

    ``user`` is the name of the account at both servers, by default the address; ``password`` is by default in the
    variable ``EMAIL_PASSWORD``. ``imap_tls`` and ``smtp_tls`` are ``implicit``, ``starttls``, or ``none`` for a server
    on this machine only. ``ca_file`` is a file of certificates to trust instead of the system's.

    ``folder`` is the folder that is read. ``sent_folder`` gets the copies of what is sent; by default it is the one
    that the server calls Sent. ``block`` is the block of a new conversation. ``max_mail_bytes`` limits what is read.

    ``idle_seconds`` is the time after which IDLE is renewed, and ``poll_seconds`` the time between two looks at a
    server without IDLE. ``settle_seconds`` is the time within which the copy of a sent mail arrives in the mailbox.
    ``timeout_seconds`` is the time within which a server must answer, and ``lease_seconds`` the time after which
    another process takes over from one that was killed.
    """

    address: str = ""
    owners: tuple[str, ...] = ()
    authentication_server: str = ""
    answer_strangers: bool = False
    block: str | None = None
    imap_host: str = ""
    imap_port: Port = 993
    imap_tls: Tls = "implicit"
    smtp_host: str = ""
    smtp_port: Port = 465
    smtp_tls: Tls = "implicit"
    ca_file: Path | None = None
    user: str = ""
    password: Secret | None = None
    folder: str = "INBOX"
    sent_folder: str | None = None
    max_mail_bytes: Annotated[int, msgspec.Meta(ge=10_000, le=100_000_000)] = 25_000_000
    idle_seconds: Seconds = 60
    poll_seconds: Seconds = 30
    settle_seconds: Seconds = 60
    timeout_seconds: Seconds = 30
    lease_seconds: Annotated[int, msgspec.Meta(ge=1, le=300)] = 10

    def __post_init__(self) -> None:
        for name, addresses in {"address": (self.address,), "owners": self.owners}.items():
            for address in addresses:
                if address and _ADDRESS.fullmatch(address) is None:
                    raise ConfigError(
                        f"channels.email.{name}: {address!r} is no mail address.",
                        hint="Write the address alone, such as ada@example.org.",
                    )
        if self.address and self.address.lower() in (owner.lower() for owner in self.owners):
            raise ConfigError(
                "channels.email.owners contains the address of the mailbox itself.",
                hint="The mailbox needs an address of its own; owners are the addresses that you write from.",
            )
        for name, tls, host in (
            ("imap", self.imap_tls, self.imap_host), ("smtp", self.smtp_tls, self.smtp_host),
        ):  # fmt: skip
            if tls == "none" and host and not _is_loopback(host):
                raise ConfigError(
                    f'channels.email.{name}_tls = "none" would send the password of {host} unencrypted.',
                    hint='Use "implicit" or "starttls". "none" is for a server on this machine only.',
                )

    @property
    def account(self) -> str:
        """The word that names the mailbox in records."""
        return hashlib.sha256(self.address.lower().encode()).hexdigest()[:16]

    @property
    def domain(self) -> str:
        """The domain of the mailbox."""
        return self.address.rpartition("@")[2].lower()

    @property
    def login(self) -> str:
        """The name of the account."""
        return self.user or self.address

    def check(self) -> None:
        """Raise ConfigError if the channel cannot run with these settings."""
        for name in ("address", "imap_host", "smtp_host"):
            if not getattr(self, name):
                raise ConfigError(
                    f"channels.email.{name} is not set.",
                    hint="The how-to page of e-mail names the settings of a mailbox.",
                )
        self.reveal_password()

    def reveal_password(self) -> str:
        """Return the password of the account.

        Raises:
            ConfigError: the variable is not set.
        """
        reference = self.password or PASSWORD
        if not reference.is_set():
            raise ConfigError(
                f"channels.email.password: the environment variable {reference.env} with the password of the mailbox "
                "is not set.",
                hint="Set it where Trunkline runs, and start again. Many providers want an app password.",
            )
        return reference.reveal().strip()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
