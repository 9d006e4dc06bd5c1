"""The state that the HTTP handlers share. Data only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast

import anyio
from starlette.requests import HTTPConnection

from trunkline.contracts.gateway.access import HttpRoute, Identity, StaticSite, is_home_owner
from trunkline.contracts.turns.poll_limiter import PollLimiter
from trunkline.plugins.ownership import OwnedItem
from trunkline.runtime.http.auth import HttpAuth
from trunkline.runtime.http.auth_middleware import IDENTITY
from trunkline.runtime.locale_checks import CheckedLocale
from trunkline.workers.gateway.sender import Sender
from trunkline.workers.gateway.services import Services

if TYPE_CHECKING:
    from trunkline.workers.gateway.http.routes.metrics import JournalMetrics
    from trunkline.workers.gateway.socket.registry import SocketRegistry
    from trunkline.workers.gateway.socket.tickets import TicketStore

CHANNEL = "http"

OPENAI_PREFIX = "/v1/"
"""The beginning of the paths of OpenAI's API."""

ESCAPE_FACTOR = 6
"""The largest number of bytes of JSON that one byte of content may take."""

BODY_OVERHEAD = 65_536
"""The bytes of a body that are allowed besides its content."""


@dataclass(frozen=True, slots=True)
class AppState:
    """The services, limits and credentials of the HTTP handlers. ``closing`` is set when the server stops and
    streams must end."""

    services: Services
    auth: HttpAuth
    routes: Sequence[OwnedItem[HttpRoute]]
    host: str
    max_content: int
    metrics: "JournalMetrics"
    sockets: "SocketRegistry"
    tickets: "TicketStore"
    poll_limiter: PollLimiter
    closing: anyio.Event
    metrics_for: Literal["token", "open", "off"] = "token"
    hosts: tuple[str, ...] = ()
    site: OwnedItem[StaticSite] | None = None
    locales: Mapping[str, CheckedLocale] = field(default_factory=dict)

    @property
    def max_text_body(self) -> int:
        """The largest number of bytes of a body with text as JSON."""
        return self.max_content * ESCAPE_FACTOR + BODY_OVERHEAD

    @property
    def max_body(self) -> int:
        """The largest number of bytes of a body with text, and with files as base64."""
        return self.max_text_body + self.services.attachments.limits.total * 4 // 3


def app_state_of(request: HTTPConnection) -> AppState:
    """Return the state of the application that a request was sent to."""
    return cast(AppState, request.app.state.parts)


def services_of(request: HTTPConnection) -> Services:
    """Return the gateway's services."""
    return app_state_of(request).services


def is_owner(request: HTTPConnection) -> bool:
    """Report whether the request carries the token of the home, or an access token of the owner that permits as much.
    Only they receive a provider's error text."""
    identity = cast("Identity | None", request.scope.get(IDENTITY))
    return identity is not None and is_home_owner(identity)


def sender_of(request: HTTPConnection) -> Sender:
    """Return the sender of a request, as the authentication middleware determined it."""
    return Sender(CHANNEL, cast(Identity, request.scope[IDENTITY]))
