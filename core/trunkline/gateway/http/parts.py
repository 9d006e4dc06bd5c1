"""What the HTTP handlers stand on, handed to them by the app. Data only."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast

import anyio
from starlette.requests import Request

from trunkline.abc.gateway import HttpRoute, Identity
from trunkline.gateway.approvals import Approvals
from trunkline.gateway.auth import Door
from trunkline.gateway.blocks import Blocks
from trunkline.gateway.conversations import Conversations
from trunkline.gateway.grants import Grants
from trunkline.gateway.sender import Sender
from trunkline.gateway.service import Messages
from trunkline.plugins.owned import Owned
from trunkline_bus import Bus

if TYPE_CHECKING:
    from trunkline.gateway.http.metrics import Metrics

CHANNEL = "http"


@dataclass(frozen=True, slots=True)
class Parts:
    """``closing`` is set when the server stops and streams have to end."""

    bus: Bus
    messages: Messages
    approvals: Approvals
    grants: Grants
    conversations: Conversations
    blocks: Blocks
    door: Door
    routes: Sequence[Owned[HttpRoute]]
    host: str
    max_content: int
    metrics: "Metrics"
    metrics_for: Literal["token", "open", "off"] = "token"
    hosts: tuple[str, ...] = ()
    closing: anyio.Event = field(default_factory=anyio.Event)


def parts_of(request: Request) -> Parts:
    """The parts of the app that a request came to."""
    return cast(Parts, request.app.state.parts)


def sender_of(request: Request) -> Sender:
    """Who asks, as the door has told."""
    return Sender(CHANNEL, cast(Identity, request.scope["trunkline.identity"]))
