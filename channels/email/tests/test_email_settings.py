"""The settings of the e-mail channel: encryption, passwords, and errors that name the setting and not the secret."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from trunkline import ConfigError
from trunkline.api.channel import STATE_PREFIX, AccountState
from trunkline.api.testing import ScriptedGateway, running_channel, wait_until
from trunkline_email.settings import EmailSettings

from .mail_servers import mail_servers
from .mail_store import AGENT

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a key and a certificate for localhost."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path


def _server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


@pytest.mark.parametrize("tls", ["implicit", "starttls"])
async def test_both_servers_are_used_over_tls(tls: str, certificate: Path) -> None:
    """The certificate and the name of the host are verified, and the password is sent after that only."""
    async with (
        ScriptedGateway() as gateway,
        mail_servers(tls=_server_context(certificate), starttls=tls == "starttls") as servers,
    ):
        more: dict[str, Any] = {
            "imap_tls": tls,
            "smtp_tls": tls,
            "imap_host": "localhost",
            "smtp_host": "localhost",
        }
        async with running_channel(servers.channel(**more, ca_file=certificate), gateway):
            servers.store.say("hello")
            await wait_until(servers.store.mails)
        commands = len(servers.store.commands)
        untrusted = servers.channel(**more)
        async with running_channel(untrusted, gateway):
            await wait_for_state(gateway, "failing")
        assert "LOGIN" not in servers.store.commands[commands:]


async def wait_for_state(gateway: ScriptedGateway, wanted: str) -> str:
    """Wait until the channel reports this state, and return the text of it."""
    while True:
        for one in await gateway.records().list(STATE_PREFIX, AccountState):
            if one.value.state == wanted:
                return one.value.text
        await anyio.sleep(0.01)


async def test_starttls_that_the_server_does_not_offer_sends_no_password() -> None:
    """The channel does not go on unencrypted."""
    async with (
        ScriptedGateway() as gateway,
        mail_servers() as servers,
        running_channel(servers.channel(imap_tls="starttls"), gateway),
    ):
        await wait_for_state(gateway, "failing")
    assert "LOGIN" not in servers.store.commands


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"imap_tls": "none", "imap_host": "imap.example.org"}, "imap_tls"),
        ({"smtp_tls": "none", "smtp_host": "192.0.2.1"}, "smtp_tls"),
        ({"address": "agent"}, "address"),
        ({"owners": ("Ada <ada@owner.test>",)}, "owners"),
        ({"address": AGENT, "owners": (AGENT.upper(),)}, "owners"),
    ],
)
async def test_a_wrong_setting_is_named(changes: dict[str, Any], setting: str) -> None:
    """It is found when the settings are read."""
    with pytest.raises(ConfigError, match=rf"channels\.email\.{setting}"):
        EmailSettings(**changes)


async def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address, the servers and the password have no default."""
    async with ScriptedGateway() as gateway, mail_servers() as servers:
        for name in ("address", "imap_host", "smtp_host"):
            with pytest.raises(ConfigError, match=rf"channels\.email\.{name} is not set"):
                await servers.channel(**{name: ""}).run(gateway)
        monkeypatch.delenv("EMAIL_PASSWORD")
        with pytest.raises(ConfigError, match="EMAIL_PASSWORD"):
            await servers.channel().run(gateway)


async def test_a_refused_password_is_named_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the setting, doctor says so, and the password is in neither."""
    monkeypatch.setenv("EMAIL_PASSWORD", "a-wrong-password")
    async with ScriptedGateway() as gateway, mail_servers() as servers:
        with pytest.raises(ConfigError) as failed:
            await servers.channel().run(gateway)
        text = await wait_for_state(gateway, "failing")
    error = failed.value
    assert "channels.email.password" in error.sentence
    assert "refuses the login" in text and "a-wrong-password" not in f"{error.sentence} {error.hint} {text}"
