"""A platform, a scripted service, and the channel between them as a process of its own, which tests kill."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from trunkline.api.testing import ChannelInstallation, channel_installation

from .target import ENV, SECRET, Sender, Target, target


@dataclass
class WebhookService:
    """A program that sends messages, each until it is accepted, and receives the answers."""

    home: Path
    target: Target
    tasks: TaskGroup
    sent: int = 0

    def say(self, text: str) -> None:
        """Send a message in the background."""
        self.sent += 1
        self.tasks.start_soon(self._send, text, f"id-{self.sent}")

    async def _send(self, text: str, id: str) -> None:
        await Sender(self.home).say(text, thread="", id=id)

    def seen(self) -> list[str]:
        """Return the answers that are new."""
        return self.target.texts()


@asynccontextmanager
async def installed(home: Path) -> AsyncIterator[ChannelInstallation[WebhookService]]:
    """Run the platform and the program. The channel is not started yet."""
    async with target() as one, anyio.create_task_group() as tasks:
        section = {
            "webhooks.garden.secret.env": ENV,
            "webhooks.garden.url": one.url,
            "listen": "127.0.0.1:0",
            "lease_seconds": 1,
        }
        service = WebhookService(home, one, tasks)
        async with channel_installation(home, "webhook", section, service, {ENV: SECRET}) as installation:
            yield installation
        tasks.cancel_scope.cancel()
