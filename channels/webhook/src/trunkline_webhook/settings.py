"""The section ``[channels.webhook]`` of ``trunkline.toml``."""

import re
from collections.abc import Iterable
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from trunkline import ConfigError, Secret

LISTEN = "127.0.0.1:8421"

ACCOUNT = "receiver"
"""The account of the lease and the ledger: all processes of an installation share one address."""

_NAME = re.compile("[a-z0-9][a-z0-9_-]{0,63}")


class Webhook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[channels.webhook.webhooks.NAME]``: one sender, at ``/webhooks/NAME``.

    ``secret`` is the key of both directions' signatures. ``signature`` is how the sender signs: ``standard`` as in
    Standard Webhooks, ``hub`` as GitHub, Gitea and Forgejo do (``X-Hub-Signature-256``). ``block`` is the block of its
    messages. With a ``prompt`` every body is data: the agent gets the prompt and the body below it, and each request
    begins a conversation. Without one a body is ``{"text": …, "thread": …}``.

    ``url`` is where answers are sent; without one they are not sent. With ``notices`` the address receives approvals
    and notices to the owner as well. With ``decides`` a message such as ``approve ID`` decides about a call: whoever
    knows the secret is then the owner.
    """

    secret: Secret
    signature: Literal["standard", "hub"] = "standard"
    block: str | None = None
    prompt: str = ""
    url: str = ""
    notices: bool = False
    decides: bool = False


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[channels.webhook]``. ``webhooks`` are the senders by name. ``listen`` is the address and port of the receiver.

    ``max_bytes`` is the size of the largest body. ``timeout_seconds`` is how long a request to an address of yours may
    take. ``give_up_hours`` is how long an answer is tried again. ``lease_seconds`` is the time after which another
    process takes over from one that was killed.
    """

    webhooks: dict[str, Webhook] = {}
    listen: str = LISTEN
    max_bytes: Annotated[int, msgspec.Meta(ge=1024, le=16 * 1024 * 1024)] = 256 * 1024
    timeout_seconds: Annotated[float, msgspec.Meta(ge=0.1, le=300)] = 20.0
    give_up_hours: Annotated[float, msgspec.Meta(gt=0, le=720)] = 72.0
    lease_seconds: Annotated[int, msgspec.Meta(ge=1, le=300)] = 10

    def __post_init__(self) -> None:
        if not _is_address(self.listen):
            raise ConfigError(
                "channels.webhook.listen is no address with a port.", hint=f'Write listen = "{LISTEN}".'
            )
        for name, webhook in self.webhooks.items():
            if _NAME.fullmatch(name) is None:
                raise ConfigError(
                    f"channels.webhook.webhooks: {name!r} cannot be the name of a webhook.",
                    hint="Use a-z, 0-9, - and _, and begin with a letter or digit.",
                )
            if webhook.url and not _is_url(webhook.url):
                raise ConfigError(
                    f"channels.webhook.webhooks.{name}.url is no address of a server.",
                    hint="Write it with http:// or https://, and without a user or password.",
                )
            if webhook.notices and not webhook.url:
                raise ConfigError(
                    f"channels.webhook.webhooks.{name}.notices needs an address to send notices to.",
                    hint=f"Set channels.webhook.webhooks.{name}.url, or remove notices.",
                )
            if webhook.decides and webhook.prompt:
                raise ConfigError(
                    f"channels.webhook.webhooks.{name}: a webhook with a prompt cannot decide, because its bodies are "
                    "data.",
                    hint="Remove decides, or use another webhook for decisions.",
                )


def named_blocks(settings: WebhookSettings) -> Iterable[tuple[tuple[str, ...], str]]:
    """Return the blocks that the settings name, with their paths below the section."""
    for name, webhook in settings.webhooks.items():
        if webhook.block is not None:
            yield ("webhooks", name, "block"), webhook.block


def host_and_port(address: str) -> tuple[str, int]:
    """Return the parts of ``HOST:PORT``. An IPv6 address is in brackets."""
    parts = urlsplit(f"//{address}")
    return parts.hostname or "", parts.port or 0


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(f"//{text}")
        return bool(parts.hostname) and parts.port is not None and not parts.path and parts.username is None
    except ValueError:
        return False


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.username is None
            and parts.port != 0
        )
    except ValueError:
        return False
