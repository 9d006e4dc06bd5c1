"""A platform, a scripted service, and the channel between them as a process of its own, which tests kill."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trunkline.api.testing import ChannelInstallation, channel_installation

from .mail_servers import mail_servers
from .mail_store import PASSWORD, MailStore


@asynccontextmanager
async def installed(home: Path) -> AsyncIterator[ChannelInstallation[MailStore]]:
    """Run the platform and the servers. The channel is not started yet."""
    async with mail_servers() as servers:
        store = servers.store
        section = servers.section(lease_seconds=1, settle_seconds=1)
        section["owners"] = list(section["owners"])
        environ = {"EMAIL_PASSWORD": PASSWORD}
        async with channel_installation(
            home, "email", section, store, environ, settled=lambda: not store.untaken()
        ) as installation:
            yield installation
