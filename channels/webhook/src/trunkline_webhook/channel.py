"""The channel ``webhook``."""

from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from trunkline import ConfigError, Unavailable
from trunkline.api.channel import (
    AccountLease,
    AccountReport,
    Channel,
    Gateway,
    LeaseHolder,
    http_listener,
    serve_app,
)
from trunkline_webhook.settings import ACCOUNT, WebhookSettings, host_and_port
from trunkline_webhook.signature import WebhookSignature

if TYPE_CHECKING:  # HTTP is imported by the channel that runs, not by each process that lists channels
    from trunkline_webhook.deliveries import WebhookDeliveries

REPORT_SECONDS = 60.0
"""Seconds between two reports that the receiver works."""


class WebhookChannel(Channel):
    """Receives signed requests, and sends signed requests with answers, approvals and notices.

    Guarantees: a request is answered with 200 or 202 when its message is on disk. A repeated request begins one turn.
    An answer is sent until its address accepts or refuses it, whichever process is killed.

    Not guaranteed: that an address receives a request once. A repeated request has the same ``webhook-id``.
    """

    name = "webhook"
    shows = "A program gets the text as it is: Markdown is not drawn."

    def __init__(self, settings: WebhookSettings, home: Path) -> None:
        self._settings = settings
        self._home = home
        self._deliveries: WebhookDeliveries | None = None

    async def tell_owner(self, text: str) -> None:
        """Send the owner a text. Raises as ``Channel.tell_owner`` does."""
        if self._deliveries is None:
            raise Unavailable("The channel webhook does not run.")
        await self._deliveries.tell(text)

    async def run(self, gateway: Gateway) -> None:
        """Serve while this process has the lease. Raises ConfigError for a secret that is missing, and for an address
        that cannot be listened on.
        """
        if not self._settings.webhooks:
            raise ConfigError(
                "The channel webhook is enabled, but channels.webhook.webhooks has no webhook.",
                hint="Add [channels.webhook.webhooks.NAME] with a secret to trunkline.toml.",
            )
        signatures = {
            name: WebhookSignature(name, webhook) for name, webhook in self._settings.webhooks.items()
        }
        records = gateway.records()
        report = AccountReport(records, ACCOUNT, f"the receiver at {self._settings.listen}")

        async def waiting(holder: LeaseHolder) -> None:
            await report.waiting(f"process {holder.pid} on {holder.host}")

        lease = AccountLease(records, ACCOUNT, seconds=self._settings.lease_seconds)
        await lease.run(lambda: self._serve(gateway, signatures, report), waiting=waiting)

    async def _serve(
        self, gateway: Gateway, signatures: dict[str, WebhookSignature], report: AccountReport
    ) -> None:
        from trunkline_webhook.app import WebhookApp
        from trunkline_webhook.deliveries import WebhookDeliveries
        from trunkline_webhook.posts import WebhookPosts
        from trunkline_webhook.requests import WebhookRequests

        settings = self._settings
        host, port = host_and_port(settings.listen)
        listener = http_listener(
            host,
            port,
            home=self._home,
            purpose="webhooks (channels.webhook)",
            credential="a signature with the secret of a webhook",
        )
        with listener as listening:
            async with (
                WebhookPosts(settings, signatures, gateway.file) as posts,
                anyio.create_task_group() as tasks,
            ):
                deliveries = WebhookDeliveries(settings, gateway, posts)
                requests = WebhookRequests(settings, gateway, deliveries)
                receiver = WebhookApp(settings.webhooks, signatures, settings.max_bytes, requests.accept)
                await deliveries.run(tasks)
                self._deliveries = deliveries
                tasks.start_soon(_report_forever, report)
                try:
                    await serve_app(receiver.app(), listening)
                finally:
                    self._deliveries = None


async def _report_forever(report: AccountReport) -> None:
    while True:
        await report.serving()
        await anyio.sleep(REPORT_SECONDS)
