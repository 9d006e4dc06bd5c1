"""The contract of a channel, as a test suite for any channel.

::

    from contextlib import asynccontextmanager

    from trunkline.api.testing import ChannelSuite, ChannelUser

    class TestDoorbell(ChannelSuite):
        @asynccontextmanager
        async def person(self):
            bell = Doorbell()
            yield ChannelUser(bell, say=bell.press, seen=lambda: bell.display)

The suite runs the channel on a ``ScriptedGateway`` and acts as the person.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import anyio
import pytest

from trunkline.contracts.approvals.messages import DECIDED_BY_DEADLINE, Approval
from trunkline.contracts.channels.channel import Channel
from trunkline.contracts.conversations.messages import ToolCall
from trunkline.contracts.gateway.messages import MAX_SHOWS, SendMessage
from trunkline.contracts.turns.feed_messages import ApprovalRequested, TextDelta, TextReset, TurnEnded
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.testing.contract_suite import ContractSuite
from trunkline.testing.scripted_gateway import ScriptedGateway, Step

WAIT_SECONDS = 60.0
"""Seconds within which a channel must react."""


@dataclass(frozen=True, slots=True)
class ChannelUser:
    """A person who uses a channel. ``say`` sends a message, and ``seen`` returns all text that the channel has shown
    so far.

    ``decide`` answers a shown approval with yes or no. It is None for a channel without decisions, such as a pipe.
    """

    channel: Channel
    say: Callable[[str], Awaitable[None]]
    seen: Callable[[], str]
    decide: Callable[[Approval, bool], Awaitable[None]] | None = None


class ChannelSuite(ContractSuite, ABC):
    """Inherit from this class and implement ``person``; pytest runs the tests."""

    @abstractmethod
    def person(self) -> AbstractAsyncContextManager[ChannelUser]:
        """Yield a new channel that is not running yet, with its user."""

    async def _talk(self, gateway: ScriptedGateway, act: Callable[[ChannelUser], Awaitable[None]]) -> None:
        """Run the channel while the person acts."""
        async with self.person() as person, anyio.create_task_group() as tasks:
            tasks.start_soon(person.channel.run, gateway)
            with anyio.fail_after(WAIT_SECONDS):
                await act(person)
            tasks.cancel_scope.cancel()

    @pytest.mark.anyio
    async def test_the_name_is_a_subject_key(self) -> None:
        """A channel's name is in lower case and valid in a subject."""
        async with self.person() as person:
            assert re.fullmatch("[a-z0-9][a-z0-9_-]{0,63}", person.channel.name)

    @pytest.mark.anyio
    async def test_the_format_hint_is_within_its_limit(self) -> None:
        """The hint is within the gateway's limit, because the model receives it with every message."""
        async with self.person() as person:
            assert len(person.channel.shows) <= MAX_SHOWS

    @pytest.mark.anyio
    async def test_a_message_is_sent_once_and_can_be_repeated(self) -> None:
        """A person's message is sent once, unchanged, with a client id that makes a repetition harmless."""
        async with ScriptedGateway() as gateway:

            async def act(person: ChannelUser) -> None:
                await person.say("good morning")
                await wait_until(lambda: "You said: good morning" in person.seen())

            await self._talk(gateway, act)
            assert [message.content for message in gateway.sent] == ["good morning"]
            assert gateway.sent[0].client_id

    @pytest.mark.anyio
    async def test_a_conversation_continues(self) -> None:
        """The second message is sent to the conversation of the first."""
        async with ScriptedGateway() as gateway:

            async def act(person: ChannelUser) -> None:
                for word in ("one", "two"):
                    await person.say(word)
                    await wait_until(lambda word=word: f"You said: {word}" in person.seen())  # type: ignore[misc]

            await self._talk(gateway, act)
            assert gateway.sent[0].conversation is None
            assert gateway.sent[1].conversation is not None

    @pytest.mark.anyio
    async def test_the_gateway_may_be_unreachable(self) -> None:
        """A message that is written while no gateway answers is sent once, when a gateway answers again."""
        async with ScriptedGateway() as gateway:

            async def act(person: ChannelUser) -> None:
                await person.say("first")
                await wait_until(lambda: "You said: first" in person.seen())
                gateway.away = True
                await person.say("second")
                await anyio.sleep(0.5)
                assert "You said: second" not in person.seen()
                gateway.away = False
                await wait_until(lambda: "You said: second" in person.seen())

            await self._talk(gateway, act)
            assert [message.content for message in gateway.sent] == ["first", "second"]

    @pytest.mark.anyio
    async def test_a_failed_turn_shows_its_fixed_sentence(self) -> None:
        """The fixed sentence of a failure is shown after the text that was already answered."""
        sentence = FIXED_SENTENCES[ErrorCode.PROVIDER_ERROR]

        def answer(message: SendMessage) -> Iterable[Step]:
            yield TextDelta(step=0, offset=0, text="Half of an ans")
            yield TurnEnded(reason="error", code=ErrorCode.PROVIDER_ERROR, sentence=sentence)

        async with ScriptedGateway(answer) as gateway:

            async def act(person: ChannelUser) -> None:
                await person.say("hello")
                await wait_until(lambda: sentence in " ".join(person.seen().split()))
                assert "Half of an ans" in person.seen()

            await self._talk(gateway, act)

    @pytest.mark.anyio
    async def test_a_repeated_answer_is_shown_to_its_end(self) -> None:
        """Text that is reset and sent again is shown completely."""

        def answer(message: SendMessage) -> Iterable[Step]:
            yield TextDelta(step=0, offset=0, text="The answer i")
            yield TextReset(step=0)
            yield TextDelta(step=0, offset=0, text="It is forty-two.")
            yield TurnEnded(reason="stop")

        async with ScriptedGateway(answer) as gateway:

            async def act(person: ChannelUser) -> None:
                await person.say("what is it")
                await wait_until(lambda: "It is forty-two." in person.seen())

            await self._talk(gateway, act)

    @pytest.mark.anyio
    async def test_nothing_is_allowed_without_an_explicit_decision(self) -> None:
        """The channel itself never answers a request for approval."""

        def answer(message: SendMessage) -> Iterable[Step]:
            call = ToolCall(id="c1", name="send_mail")
            yield ApprovalRequested(call=call, call_hash="h", question="Send the mail?")
            yield anyio.Event()

        async with ScriptedGateway(answer) as gateway:

            async def act(person: ChannelUser) -> None:
                await person.say("write to them")
                await wait_until(lambda: "Send the mail?" in person.seen())
                await anyio.sleep(0.5)

            await self._talk(gateway, act)
            assert gateway.decided == []

    @pytest.mark.anyio
    async def test_MB_T11_open_approvals_of_other_conversations_are_shown(self) -> None:
        """A call that waits in another channel's turn is shown here too, with its effect. Showing it decides nothing.
        A decision, or its absence at the deadline, is reported.
        """
        async with ScriptedGateway() as gateway:

            async def act(person: ChannelUser) -> None:
                await person.say("hello")
                await wait_until(lambda: "You said: hello" in person.seen())
                asked = gateway.request_approval("Send the mail?", detail="to: a@example.org\x1b[2J")
                await wait_until(lambda: asked.id in person.seen())
                assert "Send the mail?" in person.seen() and "a@example.org" in person.seen()
                assert "\x1b[2J" not in person.seen()
                await anyio.sleep(0.2)
                assert gateway.decided == []
                gateway.settle(asked, allow=False, by=DECIDED_BY_DEADLINE)
                await wait_until(lambda: "in time" in person.seen())

            await self._talk(gateway, act)

    @pytest.mark.anyio
    @pytest.mark.parametrize("allow", [True, False])
    async def test_MB_T11_approvals_of_other_conversations_can_be_decided_here(self, allow: bool) -> None:
        """The owner can decide here about a call of another channel's turn. One answer is one decision."""
        async with ScriptedGateway() as gateway:

            async def act(person: ChannelUser) -> None:
                if person.decide is None:
                    return
                asked = gateway.request_approval("Send the mail?")
                await wait_until(lambda: asked.id in person.seen())
                await person.decide(asked, allow)
                await wait_until(lambda: gateway.decided)
                await anyio.sleep(0.2)
                assert gateway.decided == [(asked.turn, asked.call, allow)]

            await self._talk(gateway, act)

    @pytest.mark.anyio
    async def test_MB_T11_a_question_from_elsewhere_is_shown(self) -> None:
        """A question from another channel's agent is shown with its proposed answers. Showing it answers nothing, and
        an answer given elsewhere is reported."""
        async with ScriptedGateway() as gateway:

            async def act(person: ChannelUser) -> None:
                await person.say("hello")
                await wait_until(lambda: "You said: hello" in person.seen())
                asked = gateway.ask_question("Which one?\x1b[2J", options=("the red", "the blue"))
                await wait_until(lambda: asked.id in person.seen())
                assert "Which one?" in person.seen() and "2. the blue" in person.seen()
                assert "\x1b[2J" not in person.seen()
                await anyio.sleep(0.2)
                assert gateway.decided == []
                gateway.settle(asked, allow=True, by="channel:elsewhere", answer="the red")
                await wait_until(lambda: "Answered by" in person.seen())

            await self._talk(gateway, act)

    @pytest.mark.anyio
    async def test_a_cancelled_channel_ends(self) -> None:
        """A cancelled channel ends within seconds, even during an answer."""

        def answer(message: SendMessage) -> Iterable[Step]:
            yield TextDelta(step=0, offset=0, text="I begin")
            yield anyio.Event()

        async with ScriptedGateway(answer) as gateway, self.person() as person:
            with anyio.fail_after(WAIT_SECONDS):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(person.channel.run, gateway)
                    await person.say("go")
                    await wait_until(lambda: bool(gateway.sent))
                    tasks.cancel_scope.cancel()


async def wait_until(true: Callable[[], object], *, within: float = WAIT_SECONDS) -> None:
    """Wait until the condition is true. Raises TimeoutError after ``within`` seconds."""
    with anyio.fail_after(within):
        while not true():  # noqa: ASYNC110 - the condition is on a screen
            await anyio.sleep(0.01)
