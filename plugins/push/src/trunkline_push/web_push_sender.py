"""WebPushSender: gives an encrypted notice to the service of a browser's vendor (Web Push, RFC 8030)."""

import logging
import ssl

from trunkline.api.egress import HostGuard, UrlRefused, WebAddress, parse_url
from trunkline.api.gateway import PushNotice, PushOutcome, PushSender, PushTarget

log = logging.getLogger(__name__)

TIMEOUTS = {"connect": 5.0, "read": 10.0, "write": 10.0, "pool": 5.0}
"""Seconds for the parts of a request."""

ENDED = (404, 410)
"""The statuses of a subscription that does not exist any more."""


class WebPushSender(PushSender):
    """Sends by Web Push. ``guard`` decides which hosts may be reached, by default those of the public internet at the
    usual ports. ``tls`` is what their certificates are held to, by default the system's authorities.

    ``cryptography`` and ``httpcore2`` are imported when they are first needed.
    """

    def __init__(self, guard: HostGuard | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._guard = guard or HostGuard()
        self._tls = tls

    def public_key(self, secret: str) -> bytes:
        """Return the public key of a home."""
        from trunkline_push.encryption import encode_point
        from trunkline_push.vapid import signing_key

        return encode_point(signing_key(secret).public_key())

    async def check(self, target: PushTarget) -> None:
        """Return if notices may be sent to a target. Raises UrlRefused, HostRefused, HostUnreachable and ValueError."""
        from trunkline_push.encryption import read_point

        read_point(target.p256dh)
        address = _https_address(target)
        await self._guard.resolve_allowed(address.host, address.port)

    async def send(self, target: PushTarget, notice: PushNotice, secret: str) -> PushOutcome:
        """Send one notice. Raises as ``check`` does, and what ``httpcore2`` raises about a connection."""
        from trunkline_push.encryption import encrypt
        from trunkline_push.vapid import authorization, signing_key

        address = _https_address(target)
        headers = {
            "Host": address.authority,
            "Authorization": authorization(f"https://{address.authority}", signing_key(secret)),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(notice.seconds),
            "Topic": notice.topic,
            "Urgency": "high",
            "Connection": "close",
        }
        status = await self._post(address, headers, encrypt(notice.content, target))
        if status in ENDED:
            return "gone"
        if 200 <= status < 300:
            return "delivered"
        log.warning("%s answered a push notice with the status %d", address.host, status)
        return "failed"

    async def _post(self, address: WebAddress, headers: dict[str, str], body: bytes) -> int:
        """Return the status of the answer, whose body is not read. The connection goes to an address that the guard has
        checked now; name and certificate are those of the host.
        """
        import httpcore2

        tls = self._tls or httpcore2.default_ssl_context()
        options = {"timeout": TIMEOUTS, "sni_hostname": address.host}
        *others, last = await self._guard.resolve_allowed(address.host, address.port)
        async with httpcore2.AsyncConnectionPool(ssl_context=tls) as pool:
            for place in (*others, last):
                url = httpcore2.URL(
                    scheme=b"https",
                    host=str(place).encode(),
                    port=address.port,
                    target=address.target.encode(),
                )
                fields = [(name.encode(), value.encode()) for name, value in headers.items()]
                fields.append((b"Content-Length", str(len(body)).encode()))
                try:
                    async with pool.stream(
                        "POST", url, headers=fields, content=body, extensions=options
                    ) as response:
                        return response.status
                except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                    if place is last:
                        raise
        raise AssertionError("the last address either answers or fails")


def _https_address(target: PushTarget) -> WebAddress:
    """Return the address of a target. Raises UrlRefused, which has no part of the address."""
    try:
        address = parse_url(target.endpoint)
    except UrlRefused:
        raise UrlRefused("The address of a push subscription is not valid.") from None
    if address.scheme != "https":
        raise UrlRefused("Notices are sent with https only.")
    return address
