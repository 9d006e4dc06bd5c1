"""A platform, a scripted service, and the channel between them as a process of its own, which tests kill."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trunkline.api.testing import ChannelInstallation, channel_installation, wait_until

from .homeserver import BOT, OWNER, TOKEN, Homeserver, homeserver


@asynccontextmanager
async def installed(home: Path) -> AsyncIterator[ChannelInstallation[Homeserver]]:
    """Run the platform and the service. The first start is over: from then on nothing is lost."""
    async with homeserver() as server:
        section = {
            "homeserver": server.url,
            "user": BOT,
            "owners": [OWNER],
            "edit_seconds": 0.05,
            "lease_seconds": 1,
        }
        environ = {"MATRIX_ACCESS_TOKEN": TOKEN}
        async with channel_installation(home, "matrix", section, server, environ) as installation:
            await installation.start()
            await wait_until(lambda: server.calls.count("sync") >= 2)
            yield installation
