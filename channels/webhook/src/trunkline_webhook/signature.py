"""The signatures of requests: who knows the secret of a webhook has sent them, and nobody has changed them since."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime

from standardwebhooks import Webhook as StandardWebhook
from standardwebhooks import WebhookVerificationError

from trunkline import ConfigError, TrunklineError
from trunkline_webhook.settings import Webhook

HUB_PREFIX = "sha256="
PREFIX = "whsec_"
MIN_SECRET = 24
"""Bytes of a secret, as Standard Webhooks demands."""


class NotSigned(TrunklineError):
    """A request has no signature that is valid now."""


class WebhookSignature:
    """Signs and checks with the secret of one webhook.

    Guarantees: a request that ``check`` accepts was made by somebody who knows the secret. In the form ``standard`` it
    is not older than five minutes.

    Not guaranteed: that a request is new: the same one may arrive again, and has the same id then.
    """

    def __init__(self, name: str, webhook: Webhook) -> None:
        """Raises ConfigError for a secret that is missing or too short. The error does not contain it."""
        self._form = webhook.signature
        self._key = _key(name, webhook)
        self._webhook = StandardWebhook(self._key)

    def check(self, headers: Mapping[str, str], body: str) -> str:
        """Return the id of a request, which is the same whenever the request is repeated. ``headers`` are in lower
        case. Raises NotSigned.
        """
        if self._form == "hub":
            return self._check_hub(headers, body)
        try:
            self._webhook.verify(body, dict(headers), json_parse=False)
        except (WebhookVerificationError, binascii.Error, ValueError) as error:
            raise NotSigned("The request has no valid signature.") from error
        return headers["webhook-id"]

    def _check_hub(self, headers: Mapping[str, str], body: str) -> str:
        data = body.encode()
        expected = HUB_PREFIX + hmac.new(self._key, data, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected.encode(), headers.get("x-hub-signature-256", "").encode()):
            raise NotSigned("The request has no valid signature.")
        # The delivery's number is not signed, so the body itself must say whether a request is a repetition.
        return hashlib.sha256(data).hexdigest()

    def headers(self, id: str, body: str) -> dict[str, str]:
        """Return the headers of a request of ours, by Standard Webhooks. Raises nothing."""
        now = datetime.now(UTC)
        return {
            "webhook-id": id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self._webhook.sign(id, now, body),
        }


def _key(name: str, webhook: Webhook) -> bytes:
    text = webhook.secret.reveal().strip()
    try:
        key = text.encode() if webhook.signature == "hub" else _decoded(text)
    except ValueError as error:
        raise ConfigError(
            f"channels.webhook.webhooks.{name}.secret: the value of {webhook.secret.env} is not in Base64.",
            hint=f'Make one: echo "{PREFIX}$(openssl rand -base64 32)"',
        ) from error
    if len(key) < MIN_SECRET:
        raise ConfigError(
            f"channels.webhook.webhooks.{name}.secret: the value of {webhook.secret.env} has {len(key)} bytes, and at "
            f"least {MIN_SECRET} are needed.",
            hint=f'Make one: echo "{PREFIX}$(openssl rand -base64 32)"',
        )
    return key


def _decoded(text: str) -> bytes:
    """Return the bytes of a secret, whose padding may be missing. Raises ValueError."""
    encoded = text.removeprefix(PREFIX).rstrip("=")
    return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
