"""TLS of its own (PA-F27): the gateway in a network without a proxy, and never there without TLS."""

import json
import ssl
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import httpx
import pytest
import websockets

from trunkline.config.settings import GatewaySettings
from trunkline.contracts.auth.client import AuthClient
from trunkline.errors import ConfigError
from trunkline.runtime.certificate_files import (
    certificate_pem,
    common_name,
    general_name,
    key_pem,
    write_private,
)
from trunkline.runtime.http.gateway_certificate import gateway_certificate
from trunkline.runtime.http.owner_certificate import make_self_signed
from trunkline.runtime.http.server_certificate import ServerCertificate
from trunkline.testing.platform import clean_environ, platform
from trunkline.workers.gateway import worker


def made_certificate(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``trunkline certificate`` on a home."""
    return subprocess.run(
        [sys.executable, "-m", "trunkline.cli.main", "certificate", *arguments],
        env={**clean_environ(), "TRUNKLINE_HOME": str(home)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def signed_certificate(folder: Path) -> tuple[Path, Path, Path]:
    """A certificate for localhost, its key, and the certificate of the authority that signed it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    folder.mkdir()
    signer, key, now = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP256R1()),
        datetime.now(UTC),
    )

    def certificate(name: str, own: ec.EllipticCurvePrivateKey, *, ca: bool) -> x509.Certificate:
        builder = x509.CertificateBuilder(common_name("An authority"), common_name(name), own.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=9))
        builder = builder.add_extension(x509.BasicConstraints(ca, None), critical=True)
        names = x509.SubjectAlternativeName([general_name("localhost"), general_name("127.0.0.1")])
        return builder.add_extension(names, critical=False).sign(signer, hashes.SHA256())

    files = folder / "authority.pem", folder / "server.pem", folder / "server.key"
    write_private(files[0], certificate_pem(certificate("An authority", signer, ca=True)))
    write_private(files[1], certificate_pem(certificate("A server", key, ca=False)))
    write_private(files[2], key_pem(key))
    return files[1], files[2], files[0]


@pytest.mark.anyio
async def test_a_network_is_served_with_tls_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PA-F27: one command makes the certificate; HTTP, its cookies and WebSockets then use TLS; a renewed certificate
    is used without a restart."""
    monkeypatch.setattr(worker, "CERTIFICATE_SECONDS", 0.05)
    home = tmp_path / "home"
    home.mkdir()
    done = made_certificate(home, "--name", "192.0.2.7", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert {"localhost", "127.0.0.1", "192.0.2.7"} <= set(facts["names"])
    assert modes(facts["certificate"], facts["key"]) == {0o600}
    assert "exists" in made_certificate(home).stderr, (
        "a certificate that people trust is not replaced by accident"
    )
    assert facts["fingerprint"] in made_certificate(home, "--show").stdout
    settings = {"gateway.host": "0.0.0.0", "gateway.tls_certificate": facts["certificate"],
                "gateway.tls_key": facts["key"]}  # fmt: skip
    async with platform(home, workers=("gateway", "memory"), config=settings) as running:
        address = running.url.replace("0.0.0.0", "127.0.0.1")
        assert address.startswith("https://")
        context = ssl.create_default_context(cafile=facts["certificate"])
        async with httpx.AsyncClient(base_url=address, verify=context, timeout=60) as http:
            assert (await http.get("/healthz")).status_code == 200
            code = (await AuthClient(running.bus).start_pairing()).code
            paired = await http.post(
                "/api/pair", json={"code": code, "as": "cookie"}, headers={"origin": address}
            )
            assert paired.status_code == 200 and "Secure" in paired.headers["set-cookie"]
            assert "strict-transport-security" not in paired.headers, (
                "browsers would refuse it without a way out"
            )
            url, headers = (
                address.replace("https", "wss") + "/ws",
                {"authorization": f"Bearer {running.token}"},
            )
            async with websockets.connect(url, ssl=context, additional_headers=headers):
                pass
            with pytest.raises(httpx.RequestError):
                await http.get(address.replace("https", "http") + "/healthz")
        certificate, _ = make_self_signed(Path(facts["certificate"]).parent, ("localhost", "127.0.0.1"))
        with anyio.fail_after(60):
            renewed = ssl.PEM_cert_to_DER_cert(certificate.read_text())
            while await served_certificate(address) != renewed:  # noqa: ASYNC110  it is asked over the network
                await anyio.sleep(0.05)


def modes(*files: str) -> set[int]:
    """The modes of files."""
    return {stat.S_IMODE(Path(file).stat().st_mode) for file in files}


async def served_certificate(address: str) -> bytes:
    """The certificate that a new connection is shown."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with await anyio.connect_tcp(
        "127.0.0.1",
        int(address.rpartition(":")[2]),
        tls=True,
        ssl_context=context,
        tls_standard_compatible=False,
    ) as stream:
        shown = stream.extra(anyio.streams.tls.TLSAttribute.peer_certificate_binary)
        assert shown is not None
        return shown


@pytest.mark.anyio
async def test_with_a_certificate_of_an_authority_browsers_use_tls_only(tmp_path: Path) -> None:
    """PA-F27: Strict-Transport-Security is sent where a name has a certificate that is vouched for."""
    certificate, key, authority = signed_certificate(tmp_path / "tls")
    settings = {"gateway.tls_certificate": str(certificate), "gateway.tls_key": str(key)}
    async with platform(tmp_path / "home", workers=("gateway", "memory"), config=settings) as running:
        context = ssl.create_default_context(cafile=authority)
        async with httpx.AsyncClient(base_url=running.url, verify=context, timeout=60) as http:
            for path in ("/healthz", "/conversations"):
                assert (await http.get(path)).headers["strict-transport-security"] == "max-age=31536000"


def test_plain_http_in_a_network_is_refused(tmp_path: Path) -> None:
    """PA-F27: the start ends with what to do instead. A proxy in front has to be named."""
    for host in ("0.0.0.0", "::", "192.0.2.7", "agents.lan"):
        with pytest.raises(ConfigError, match="without TLS") as refused:
            gateway_certificate(GatewaySettings(host=host))
        assert "trunkline certificate" in refused.value.hint and "behind_proxy" in refused.value.hint
        assert gateway_certificate(GatewaySettings(host=host, behind_proxy=True)) is None
    for host in ("127.0.0.1", "127.0.0.2", "::1", "localhost"):
        assert gateway_certificate(GatewaySettings(host=host)) is None
    certificate, key, _ = signed_certificate(tmp_path / "tls")
    assert (
        gateway_certificate(GatewaySettings(host="0.0.0.0", tls_certificate=certificate, tls_key=key))
        is not None
    )


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    """PA-F27: each error has the path and what to do; nothing waits for a password."""
    from cryptography.hazmat.primitives import serialization

    certificate, key, authority = signed_certificate(tmp_path / "tls")
    other = signed_certificate(tmp_path / "other")[1]
    text, locked, missing = tmp_path / "text.pem", tmp_path / "locked.key", tmp_path / "missing.pem"
    text.write_text("no certificate\n")
    write_private(text.with_suffix(".key"), b"no key\n")
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    secret = serialization.BestAvailableEncryption(b"secret")
    write_private(
        locked, loaded.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret)
    )
    cases = (
        (missing, key, missing, "no such file"),
        (certificate, missing, missing, "no such file"),
        (certificate, tmp_path, tmp_path, "is a directory"),
        (text, key, text, "cannot be used"),
        (certificate, text.with_suffix(".key"), text.with_suffix(".key"), "cannot be used"),
        (certificate, other, other, "another certificate's"),
        (certificate, locked, locked, "password"),
    )
    for first, second, named, why in cases:
        with pytest.raises(ConfigError) as refused:
            gateway_certificate(GatewaySettings(tls_certificate=first, tls_key=second))
        assert str(named) in str(refused.value) and why in str(refused.value).lower(), (
            why,
            str(refused.value),
        )
        assert refused.value.hint
    with pytest.raises(ConfigError, match="Only one of"):
        gateway_certificate(GatewaySettings(tls_certificate=certificate))
    key.chmod(0o644)
    with pytest.raises(ConfigError, match="Every user of this machine can read") as open_key:
        gateway_certificate(GatewaySettings(tls_certificate=certificate, tls_key=key))
    assert f"chmod 600 {key}" in open_key.value.hint
    assert authority.exists()


def test_a_renewal_that_cannot_be_used_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A half-written file is not the end of the gateway: the former certificate stays in use."""
    certificate, key, _ = signed_certificate(tmp_path / "tls")
    files = ServerCertificate.read(certificate, key)
    before = certificate.read_bytes()
    assert files.reload() is False
    certificate.write_bytes(before[:100])
    assert files.reload() is False and "the former certificate stays in use" in caplog.text
    certificate.write_bytes(before)
    assert files.reload() is True
