"""A platform, a scripted service, and the channel between them as a process of its own, which tests kill."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trunkline.api.testing import ChannelInstallation, channel_installation, wait_until

from .discord_server import OWNER, TOKEN, DiscordServer, discord_server


@asynccontextmanager
async def installed(home: Path) -> AsyncIterator[ChannelInstallation[DiscordServer]]:
    """Run the platform and the service. The first start is over: from then on nothing is lost."""
    async with discord_server() as server:
        section = {
            "owners": [OWNER],
            "api_url": server.url,
            "edit_seconds": 0.05,
            "lease_seconds": 1,
        }
        environ = {"DISCORD_BOT_TOKEN": TOKEN}
        async with channel_installation(home, "discord", section, server, environ) as installation:
            await installation.start()
            await wait_until(lambda: server.commands)
            yield installation
