"""A Matrix channel between a scripted gateway and a scripted homeserver."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trunkline import ConfigError
from trunkline.api.testing import ScriptedGateway, running_channel, wait_until
from trunkline_matrix.channel import MatrixChannel
from trunkline_matrix.settings import MatrixSettings

from .homeserver import BOT, OWNER, Homeserver, homeserver


def channel(server: Homeserver, **more: object) -> MatrixChannel:
    """A channel that edits quickly."""
    fast: dict[str, object] = {"user": BOT, "owners": (OWNER,), "edit_seconds": 0.02}
    return MatrixChannel(MatrixSettings(homeserver=server.url, **{**fast, **more}))  # type: ignore[arg-type]


@asynccontextmanager
async def talking(
    answer: object = None, **more: object
) -> AsyncIterator[tuple[Homeserver, ScriptedGateway, MatrixChannel]]:
    """A homeserver, a gateway and the running channel between them."""
    gateway = ScriptedGateway(answer) if answer else ScriptedGateway(blocks=("main", "garden"))  # type: ignore[arg-type]
    async with gateway, homeserver() as server:
        one = channel(server, **more)
        async with running_channel(one, gateway):
            await wait_until(lambda: server.calls.count("sync") >= 2)
            yield server, gateway, one
        assert server.problems == []


def refusal(error: BaseException) -> ConfigError:
    """Return the error of the settings in what a channel raised."""
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, ConfigError)
    return error
