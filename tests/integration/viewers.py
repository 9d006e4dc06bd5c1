"""Twenty viewers of one conversation: over SSE, WebSocket, in terminals, and in chats of Telegram and Discord.

Platform and services run as in production: each worker and each terminal is a process of its own. A viewer keeps what
it shows, and when each word of an answer appeared.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import anyio
import httpx
from anyio.abc import TaskGroup
from websockets.exceptions import ConnectionClosed

from channels.discord.tests import discord_server as discord
from channels.telegram.tests import bot_api_server as telegram
from tests.support.processes import ProcessPlatform, process_platform
from tests.support.socket_client import SocketClient, open_socket
from trunkline.api.testing import wait_until
from trunkline.testing.scripted_provider import provider_process
from trunkline.workers.gateway.socket.event_envelopes import ChatEnvelope, TurnEndedEnvelope

WORD = re.compile(r"word\\?-(\d+)\b")
"""A word of an answer. Chat services that read Markdown may show it with a backslash."""

TELEGRAM_CHATS = (telegram.OWNER, -100_101, -100_102, -100_103)
DISCORD_CHATS = (discord.dm_of(discord.OWNER), discord.CHANNEL, discord.THREAD)
SSE, SOCKETS, TERMINALS = 5, 5, 3

POLL_SECONDS = 0.005
"""Seconds between two looks at a scripted service."""

EDIT_SECONDS = 0.02
"""Seconds between two edits of a chat: the least that the settings permit. The services permit fewer."""


SEPARATOR = "\n" * 12
"""Between two answers over WebSocket. A piece of text is searched for words with the twelve characters before it."""


@dataclass
class Viewer:
    """One viewer. ``shown`` is the text, and ``at`` has the time at which each word first appeared in a turn. ``begun``
    tells whether a viewer over SSE has got its first line."""

    kind: str
    shown: str = ""
    begun: bool = False
    at: dict[int, float] = field(default_factory=dict)

    def show(self, text: str, turn_text: str = "") -> None:
        """The text that is shown now. Words are looked for in ``turn_text``, or in the whole text."""
        self.shown = text
        now = perf_counter()
        for found in WORD.finditer(turn_text or text):
            self.at.setdefault(int(found[1]), now)


@dataclass
class Viewers:
    """The running platform, its services and the viewers of one conversation."""

    running: ProcessPlatform
    http: httpx.AsyncClient
    telegram: telegram.BotApiServer
    discord: discord.DiscordServer
    conversation: str
    tasks: TaskGroup
    sockets: list[SocketClient] = field(default_factory=list)
    all: list[Viewer] = field(default_factory=list)

    async def watch(self, turn: str) -> list[Viewer]:
        """Have the viewers over SSE follow a turn; return them."""
        viewers = [Viewer("SSE") for _ in range(SSE)]
        for viewer in viewers:
            self.tasks.start_soon(self._read_events, turn, viewer)
        self.all = [*viewers, *(one for one in self.all if one.kind != "SSE")]
        return viewers

    async def _read_events(self, turn: str, viewer: Viewer) -> None:
        async with self.http.stream("GET", f"/api/turns/{turn}/events") as response:
            async for line in response.aiter_lines():
                viewer.begun = True
                viewer.show(f"{viewer.shown}{line}\n", line)

    def of(self, kind: str) -> list[Viewer]:
        """Return the viewers of a kind."""
        return [one for one in self.all if one.kind == kind]


def _telegram_texts(server: telegram.BotApiServer, chat: int) -> list[str]:
    return [one.text for one in server.shown(chat)]


def _discord_texts(server: discord.DiscordServer, chat: int) -> list[str]:
    return server.seen(chat)


async def _poll(viewers: Mapping[int, Viewer], texts: Callable[[int], Sequence[str]]) -> None:
    while True:
        for chat, viewer in viewers.items():
            shown = texts(chat)
            if (text := "\n".join(shown)) != viewer.shown:
                viewer.show(text, shown[-1] if shown else "")
        await anyio.sleep(POLL_SECONDS)


async def _read_socket(client: SocketClient, viewer: Viewer) -> None:
    while True:
        try:
            envelope = await client.receive(3_600)
        except ConnectionClosed:  # the viewers leave
            return
        if isinstance(envelope, ChatEnvelope) and envelope.payload.role == "assistant":
            viewer.show(viewer.shown + envelope.payload.text, viewer.shown[-12:] + envelope.payload.text)
        elif isinstance(envelope, TurnEndedEnvelope):
            viewer.shown += SEPARATOR


async def _read_terminal(master: int, viewer: Viewer) -> None:
    while True:
        await anyio.wait_readable(master)
        text = os.read(master, 65_536).decode(errors="replace")
        viewer.show(viewer.shown + text, viewer.shown[-12:] + text)


def _attached_process(running: ProcessPlatform, conversation: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start ``trunkline attach`` at a terminal that can only print; return it and the terminal's other end."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 400, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "trunkline.cli.main", "attach", conversation],
        env={**running.environ, "TERM": "dumb"}, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    return process, master


@asynccontextmanager
async def _terminal(running: ProcessPlatform, conversation: str) -> AsyncIterator[Viewer]:
    process, master = _attached_process(running, conversation)
    viewer = Viewer("terminal")
    try:
        async with anyio.create_task_group() as reading:
            reading.start_soon(_read_terminal, master, viewer)
            yield viewer
            reading.cancel_scope.cancel()
    finally:
        process.kill()
        process.wait()
        os.close(master)


def _config(provider: str, bot: str, guild: str) -> dict[str, object]:
    return {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
        "permissions.approvals": "some",
        "channels.enabled": ["telegram", "discord"],
        "channels.telegram.owners": [telegram.OWNER],
        "channels.telegram.api_url": bot,
        "channels.telegram.edit_seconds": EDIT_SECONDS,
        "channels.telegram.poll_seconds": 5,
        "channels.discord.owners": [discord.OWNER],
        "channels.discord.api_url": guild,
        "channels.discord.edit_seconds": EDIT_SECONDS,
    }


TOKENS = {"TELEGRAM_BOT_TOKEN": telegram.TOKEN, "DISCORD_BOT_TOKEN": discord.TOKEN}


@asynccontextmanager
async def viewers(home: Path) -> AsyncIterator[Viewers]:
    """Run a platform whose new conversation twenty viewers watch. Those over SSE follow a turn by ``watch``."""
    async with AsyncExitStack() as stack:
        provider = stack.enter_context(provider_process())
        bot = await stack.enter_async_context(telegram.bot_api_server())
        guild = await stack.enter_async_context(discord.discord_server())
        running = await stack.enter_async_context(
            process_platform(home, config=_config(provider, bot.url, guild.url), environ=TOKENS)
        )
        headers = {"authorization": f"Bearer {running.token}"}
        limits = httpx.Limits(max_connections=100)
        http = await stack.enter_async_context(
            httpx.AsyncClient(base_url=running.url, headers=headers, timeout=120, limits=limits)
        )
        conversation = (await running.say("say:the beginning")).accepted.conversation
        tasks = await stack.enter_async_context(anyio.create_task_group())
        found = Viewers(running, http, bot, guild, conversation, tasks)
        for _ in range(SOCKETS):
            client = await stack.enter_async_context(open_socket(running.url, running.token))
            await client.done("subscribe", conversation=conversation)
            found.sockets.append(client)
            found.all.append(Viewer("WebSocket"))
            tasks.start_soon(_read_socket, client, found.all[-1])
        for _ in range(TERMINALS):
            found.all.append(await stack.enter_async_context(_terminal(running, conversation)))
        await _attach_chats(found)
        await wait_until(lambda: all("the beginning" in one.shown for one in found.of("terminal")))
        try:
            yield found
        finally:
            tasks.cancel_scope.cancel()


async def _attach_chats(found: Viewers) -> None:
    bot, guild = found.telegram, found.discord
    await wait_until(lambda: "getUpdates" in bot.calls and guild.commands and guild.identified)
    for chat in TELEGRAM_CHATS:
        bot.say(f"/attach{'@trunk_bot' if chat < 0 else ''} {found.conversation}", chat=chat)
    for chat in DISCORD_CHATS:
        mention = "" if chat == DISCORD_CHATS[0] else f"<@{discord.BOT_ID}> "
        guild.say(f"{mention}/attach {found.conversation}", channel=chat)
    chats = {chat: Viewer("Telegram") for chat in TELEGRAM_CHATS}
    rooms = {chat: Viewer("Discord") for chat in DISCORD_CHATS}
    await wait_until(lambda: all("now shows all" in "".join(_telegram_texts(bot, one)) for one in chats))
    await wait_until(lambda: all("now shows all" in "".join(_discord_texts(guild, one)) for one in rooms))
    found.all += [*chats.values(), *rooms.values()]
    found.tasks.start_soon(_poll, chats, lambda chat: _telegram_texts(bot, chat))
    found.tasks.start_soon(_poll, rooms, lambda chat: _discord_texts(guild, chat))
