"""The load: several people who send messages at once, each message watched by its clients. Keeps the accepted
messages."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import httpx
from anyio.abc import TaskGroup

from trunkline.contracts.approvals.messages import Approval
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.gateway.messages import MessageAccepted, SendMessage
from trunkline.errors import ErrorCode
from trunkline_bus import BusError, RemoteFault

from .clients import LEAVES_AFTER, HttpClient, read_feed
from .platform_processes import FaultTarget
from .programs import PlannedMessage, draw_message
from .retries import until_accepted
from .transcript import FeedTranscript, HttpTranscript, Transcript

CHANNELS = ("test", "terminal", "telegram")
"""From where people decide."""

LENGTH = 6
"""Turns of a conversation, before the same person begins another."""

Draw = Callable[[random.Random, str, str], PlannedMessage]
"""Draws a message, by its mark and the file of effects."""


@dataclass(slots=True)
class Sent:
    """A message that was accepted. ``steered`` are the ids of messages said into its turn; ``granted`` are the
    decisions about its call that were taken."""

    request: PlannedMessage
    conversation: str
    turn: str
    seen: list[Transcript] = field(default_factory=list)
    steered: list[str] = field(default_factory=list)
    granted: list[bool] = field(default_factory=list)
    over: anyio.Event = field(default_factory=anyio.Event)


class Load:
    """People who send messages until they are stopped. ``problems``: their refused messages."""

    def __init__(
        self,
        target: FaultTarget,
        http: httpx.AsyncClient,
        seed: int,
        file: Path,
        tasks: TaskGroup,
        draw: Draw = draw_message,
    ) -> None:
        self._target = target
        self._gateway = target.running.gateway
        self._http = HttpClient(http, target.gateways)
        self._seed = seed
        self._file = str(file)
        self._tasks = tasks
        self._draw = draw
        self._open = 0
        self._closed = anyio.Event()
        self.sent: list[Sent] = []
        self.problems: list[str] = []
        self.stopping = False

    async def until_quiet(self) -> None:
        """Return when every person has stopped and every client has received its end."""
        while self._open:
            self._closed = anyio.Event()
            await self._closed.wait()

    def begin(self, people: int) -> None:
        """Let so many people talk."""
        for number in range(people):
            self._go(lambda number=number: self._talk(number))  # type: ignore[misc]

    def _go(self, job: Callable[[], Awaitable[None]]) -> None:
        self._open += 1

        async def counted() -> None:
            try:
                await job()
            except RemoteFault as fault:
                self.problems.append(f"gave up: {fault.code} {fault.message}")
            finally:
                self._open -= 1
                self._closed.set()

        self._tasks.start_soon(counted)

    async def _talk(self, number: int) -> None:
        draw = random.Random(f"load/{self._seed}/{number}")
        conversation: str | None = None
        turn = 0
        while not self.stopping:
            request = self._draw(draw, f"s{self._seed}p{number}t{turn}", self._file)
            sent = await self._say(conversation, request)
            turn += 1
            if not request.queued:
                await sent.over.wait()
            conversation = sent.conversation if turn % LENGTH else None

    async def _say(self, conversation: str | None, request: PlannedMessage) -> Sent:
        if request.http:
            seen = HttpTranscript("http")
            await self._http.say(conversation, request, seen)
            sent = Sent(request, seen.conversation, seen.turn, [seen])
            self._go(lambda: self._http.follow(seen, request.drop))
        else:
            message = SendMessage(content=request.program, conversation=conversation, client_id=request.mark)
            accepted = await until_accepted(lambda: self._gateway.send(message))
            sent = Sent(request, accepted.conversation, accepted.turn)
        self.sent.append(sent)
        self._go(lambda: self._watch(sent))
        if request.late is not None:
            self._go(lambda: self._attach(sent, request.late or 0.0))
        if request.cancel is not None:
            self._go(lambda: self._cancel(sent, request.cancel or 0.0))
        if request.steer is not None:
            self._go(lambda: self._steer(sent, request.steer or 0.0))
        if request.verdicts:
            self._go(lambda: self._decide(sent))
        return sent

    async def _watch(self, sent: Sent) -> None:
        seen = FeedTranscript("feed")
        sent.seen.append(seen)
        await self._read(sent, seen, leaves_after=0)
        sent.over.set()

    async def _attach(self, sent: Sent, after: float) -> None:
        await anyio.sleep(after)
        seen = FeedTranscript("late")
        sent.seen.append(seen)
        await self._read(sent, seen, leaves_after=LEAVES_AFTER)

    async def _read(self, sent: Sent, seen: FeedTranscript, *, leaves_after: int) -> None:
        try:
            await read_feed(
                self._target.audience.gateway, sent.conversation, sent.turn, seen, leaves_after=leaves_after
            )
        except (RemoteFault, BusError) as error:
            seen.problems.append(f"reading failed: {error!r}")

    async def _cancel(self, sent: Sent, after: float) -> None:
        await anyio.sleep(after)
        await until_accepted(lambda: self._gateway.cancel(sent.turn, mode=sent.request.mode))

    async def _steer(self, sent: Sent, after: float) -> None:
        await anyio.sleep(after)
        request = sent.request
        message = SendMessage(
            content=request.steering,
            conversation=sent.conversation,
            client_id=f"{request.mark}-steer",
            steer=sent.turn,
        )
        accepted: MessageAccepted = await until_accepted(lambda: self._gateway.send(message))
        sent.steered.append(accepted.message_id)

    async def _decide(self, sent: Sent) -> None:
        """Wait for the question, take some time, and decide from several channels at once; again if asked again."""
        known: set[str] = set()
        while not sent.over.is_set():
            for asked in await until_accepted(self._gateway.waiting):
                if asked.turn == sent.turn and asked.id not in known:
                    await anyio.sleep(0.0 if known else sent.request.decide)
                    known.add(asked.id)
                    async with anyio.create_task_group() as people:
                        for channel, allow in zip(CHANNELS, sent.request.verdicts, strict=False):
                            people.start_soon(self._say_so, sent, asked, channel, allow)
            await anyio.sleep(0.2)

    async def _say_so(self, sent: Sent, asked: Approval, channel: str, allow: bool) -> None:
        gateway = GatewayClient(self._target.running.bus, channel)
        try:
            await until_accepted(lambda: gateway.decide(asked.turn, asked.call, asked.call_hash, allow=allow))
            sent.granted.append(allow)
        except RemoteFault as fault:
            if fault.code != ErrorCode.CONFLICT:  # somebody was first
                raise
