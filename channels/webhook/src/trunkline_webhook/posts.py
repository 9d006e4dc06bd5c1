"""Sends signed requests to the addresses of webhooks: the service behind the delivery ledger.

A request has an id that stays the same when it is repeated, and Standard Webhooks asks the receiver to ignore a
repeated id. So a request whose outcome is not known is sent again.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Self

import httpx

from trunkline import TrunklineError
from trunkline.api.channel import Attachment, DeliveryState, PostRefused, PostService, UnfinishedPost
from trunkline_webhook.events import has_files, with_files
from trunkline_webhook.settings import WebhookSettings
from trunkline_webhook.signature import WebhookSignature

log = logging.getLogger(__name__)

LONGEST_WAIT = 3600.0
"""Seconds that an address may ask us to wait at most."""

TRANSIENT = (408, 425, 429)
"""Statuses below 500 after which the same request may succeed."""


class AddressUnreachable(TrunklineError):
    """An address did not accept a request now. ``seconds`` is how long it asks us to wait, 0 if it does not ask."""

    def __init__(self, sentence: str, seconds: float = 0.0) -> None:
        super().__init__(sentence)
        self.seconds = seconds


class WebhookPosts(PostService):
    """Sends the bodies of deliveries. A place is the name of a webhook. The id of a post is that of its request.
    ``read_file`` returns the content of a file, as ``Gateway.file`` does.
    """

    def __init__(
        self,
        settings: WebhookSettings,
        signatures: Mapping[str, WebhookSignature],
        read_file: Callable[[Attachment], Awaitable[bytes]],
    ) -> None:
        self._read_file = read_file
        self._webhooks = settings.webhooks
        self._signatures = signatures
        # A redirect would take a body to an address that nobody has set, and a proxy of the environment would read it.
        self._client = httpx.AsyncClient(
            timeout=settings.timeout_seconds, follow_redirects=False, trust_env=False
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        """Send a request and return its id.

        Raises:
            PostRefused: the webhook has no address any more, or the address refuses the request for good.
            AddressUnreachable: it may succeed later.
            Unavailable: no gateway returns a file of the answer. Nothing was sent.
        """
        webhook, signature = self._webhooks.get(place), self._signatures.get(place)
        if webhook is None or signature is None or not webhook.url:
            raise PostRefused(f"The webhook {place} has no address any more.")
        if has_files(content):
            content = await with_files(content, self._read_file)
        id = _request_id(delivery)
        headers = {
            **signature.headers(id, content),
            "content-type": "application/json",
            "user-agent": "trunkline",
        }
        try:
            async with self._client.stream(
                "POST", webhook.url, content=content.encode(), headers=headers
            ) as answer:
                _raise_for_status(place, answer)
        except httpx.HTTPError as error:
            said = type(error).__name__
            raise AddressUnreachable(
                f"The address of the webhook {place} does not answer: {said}."
            ) from error
        return id

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        """Return None: the request is sent again with the same id. Raises nothing."""
        return None


def _request_id(delivery: DeliveryState) -> str:
    number = f"{delivery.id}\n{len(delivery.posts)}"
    return f"msg_{hashlib.sha256(number.encode()).hexdigest()[:32]}"


def _raise_for_status(place: str, answer: httpx.Response) -> None:
    status = answer.status_code
    if answer.is_success:
        return
    sentence = f"The address of the webhook {place} answered with {status}."
    if status >= 500 or status in TRANSIENT:
        raise AddressUnreachable(sentence, _wanted_pause(answer.headers.get("retry-after", "")))
    raise PostRefused(
        sentence, hint=f"Look at channels.webhook.webhooks.{place}.url and at the receiver's log."
    )


def _wanted_pause(text: str) -> float:
    """Return the seconds of ``Retry-After``, which are a number or a date; 0 if it says nothing."""
    try:
        if text.strip().isdigit():
            seconds = float(text)
        else:
            until = parsedate_to_datetime(text)
            seconds = (until - datetime.now(until.tzinfo or UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_WAIT)
