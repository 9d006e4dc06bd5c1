"""A platform, a scripted service, and the channel between them as a process of its own, which tests kill."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trunkline.api.testing import ChannelInstallation, channel_installation

from .bot_api_server import OWNER, TOKEN, BotApiServer, bot_api_server


@asynccontextmanager
async def installed(home: Path) -> AsyncIterator[ChannelInstallation[BotApiServer]]:
    """Run the platform and the service. The channel is not started yet."""
    async with bot_api_server() as server:
        section = {
            "owners": [OWNER],
            "api_url": server.url,
            "edit_seconds": 0.05,
            "lease_seconds": 1,
            "poll_seconds": 5,
        }
        environ = {"TELEGRAM_BOT_TOKEN": TOKEN}
        async with channel_installation(home, "telegram", section, server, environ) as installation:
            yield installation
