"""The push sender (issue 14): only the browser reads a notice, and only a service on the internet gets it."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from trunkline.api.egress import HostGuard
from trunkline.api.gateway import PushNotice, PushTarget
from trunkline_push.web_push_sender import WebPushSender

from .push_endpoint import (
    HOST,
    PATH,
    Browser,
    PushEndpoint,
    base64url,
    decrypt,
    push_endpoint,
    unbase64url,
    verify_vapid,
)

pytestmark = pytest.mark.anyio

SECRET = "a secret of the home"
NOTICE = PushNotice(content=b'{"block":"garden"}', topic="k3v7q-x2pzd", seconds=90)


@pytest.fixture
async def endpoint(anyio_backend: str, tmp_path: Path) -> AsyncIterator[PushEndpoint]:
    async with push_endpoint(tmp_path) as running:
        yield running


@pytest.fixture
def browser(endpoint: PushEndpoint) -> Browser:
    return Browser(endpoint.origin)


@pytest.fixture
def sender(endpoint: PushEndpoint) -> WebPushSender:
    return WebPushSender(endpoint.guard(), endpoint.tls)


def test_the_reader_of_these_tests_reads_the_example_of_the_rfc() -> None:
    """The browser of these tests decrypts as RFC 8291 says, shown by the RFC's own example (appendix A)."""
    private = unbase64url("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94")
    key = ec.derive_private_key(int.from_bytes(private, "big"), ec.SECP256R1())
    message = (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8w"
        "EqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )
    content = decrypt(unbase64url(message), key, unbase64url("BTBZMqHH6r4Tts7J_aSIgg"))
    assert content == b"When I grow up, I want to be a watermelon"


async def test_the_browser_reads_a_notice_and_the_vendor_does_not(
    sender: WebPushSender, endpoint: PushEndpoint, browser: Browser
) -> None:
    """The service gets a signed request of the right form. Its body is of one length, whatever it says."""
    await sender.check(browser.target)
    assert await sender.send(browser.target, NOTICE, SECRET) == "delivered"
    long = PushNotice(content=b'{"block":"a-much-longer-name-of-a-block"}', topic="t", seconds=1)
    assert await sender.send(browser.target, long, SECRET) == "delivered"
    first, second = endpoint.received
    assert browser.read(first) == {"block": "garden"} and len(first.body) == len(second.body)
    assert b"garden" not in first.body and first.path == PATH
    assert [first.headers[name] for name in ("ttl", "topic", "content-encoding", "host")] == [
        "90", "k3v7q-x2pzd", "aes128gcm", f"{HOST}:{endpoint.port}",
    ]  # fmt: skip
    key = verify_vapid(first.headers["authorization"], endpoint.origin)
    assert key == base64url(sender.public_key(SECRET)) != base64url(sender.public_key("another home"))


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(201, "delivered"), (404, "gone"), (410, "gone"), (429, "failed"), (500, "failed"), (307, "failed")],
)
async def test_the_status_decides_and_no_redirect_is_followed(
    status: int, outcome: str, sender: WebPushSender, endpoint: PushEndpoint, browser: Browser
) -> None:
    """Each answer is one of three outcomes, after one request."""
    endpoint.statuses.append(status)
    assert await sender.send(browser.target, NOTICE, SECRET) == outcome
    assert len(endpoint.received) == 1


ATTACKS = (
    "http://push.test/x", "https://127.0.0.1/x", "https://[::1]/x", "https://169.254.169.254/latest", "ftp://push.test",
    "https://user:password@push.test/x", "https://inside.test/x", "https://2130706433/x", "",
)  # fmt: skip


@pytest.mark.parametrize("address", ATTACKS)
async def test_nothing_is_sent_to_an_address_inside(
    address: str, sender: WebPushSender, endpoint: PushEndpoint, browser: Browser
) -> None:
    """Neither when a browser asks, nor when a notice is sent: no other scheme and no host that is not public."""
    target = PushTarget(endpoint=address, p256dh=browser.target.p256dh, auth=browser.auth)
    with pytest.raises(Exception, match=r"not|only"):
        await sender.check(target)
    with pytest.raises(Exception, match=r"not|only"):
        await sender.send(target, NOTICE, SECRET)
    assert endpoint.received == []


async def test_a_host_that_moves_inside_after_its_check_gets_nothing(
    endpoint: PushEndpoint, browser: Browser
) -> None:
    """The address is checked again for each notice, and the connection goes to what was checked."""
    answers = ["8.8.8.8", "127.0.0.1"]

    async def resolve(host: str, port: int) -> list[str]:
        return [answers.pop(0)]

    sender = WebPushSender(HostGuard(ports=[endpoint.port], resolve=resolve), endpoint.tls)
    await sender.check(browser.target)
    with pytest.raises(Exception, match="loopback"):
        await sender.send(browser.target, NOTICE, SECRET)
    assert endpoint.received == []


async def test_a_stranger_with_another_certificate_gets_nothing(
    endpoint: PushEndpoint, browser: Browser
) -> None:
    """A service whose certificate is not trusted gets no notice."""
    sender = WebPushSender(endpoint.guard())
    with pytest.raises(Exception, match="certificate verify failed"):
        await sender.send(browser.target, NOTICE, SECRET)
    assert endpoint.received == []


async def test_a_key_that_is_no_point_is_refused(sender: WebPushSender, browser: Browser) -> None:
    """A browser's key is checked before it is stored."""
    with pytest.raises(ValueError, match=r"."):
        await sender.check(PushTarget(endpoint=browser.target.endpoint, p256dh=b"\4" * 65, auth=browser.auth))


async def test_no_log_has_the_address_of_a_browser(
    sender: WebPushSender, endpoint: PushEndpoint, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever knows the address can use it, so the log names the host only."""
    caplog.set_level(logging.DEBUG)
    endpoint.statuses.append(500)
    await sender.send(browser.target, NOTICE, SECRET)
    assert HOST in caplog.text and PATH not in caplog.text and base64url(browser.auth) not in caplog.text
