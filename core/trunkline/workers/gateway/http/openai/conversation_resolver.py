"""The conversation of an OpenAI client's message: the one that the client names, else the one whose
transcript the client sends, else a new one."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from starlette.requests import HTTPConnection

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.gateway.messages import MessageAccepted, SendMessage
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.openai.tool_results import (
    check_conversation_results,
    check_following_results,
    check_transcript_results,
)
from trunkline.workers.gateway.ids import turn_id
from trunkline.workers.gateway.transcript_index import ContinuedConversation, ForkedConversation
from trunkline.workers.gateway.turn_lookup import TurnState
from trunkline_bus import Refusal, new_id

RETRY_COUNT_HEADER = "x-stainless-retry-count"
"""The header in which OpenAI's clients count their automatic retries of a request."""


@dataclass(frozen=True, slots=True)
class ConversationResolver:
    """Resolves the conversation of one message and sends the message.

    ``named`` is the conversation that the client names, ``previous`` the turn that its message continues.
    ``retry_count`` is the client's count of automatic retries, None without one. With ``adds_items`` all messages are
    new in a named conversation; otherwise they are a transcript, of which the conversation has all but the last ones.
    """

    request: HTTPConnection
    message: SendMessage
    named: str | None = None
    previous: TurnState | None = None
    retry_count: str | None = None
    adds_items: bool = False

    async def send(self, history: Sequence[Message], messages: Sequence[Message]) -> MessageAccepted:
        """Send the message. ``history`` is the client's transcript up to the last answer, ``messages`` the
        messages after it.

        In a named conversation only new messages count: results of the client's tools and the user's message.
        Raises InvalidField for a result that answers no open call, and Refusal as ``MessageService.send``
        does.
        """
        message = replace(self.message, client_id=await self._client_id((*history, *messages)))
        if self.previous is not None:
            return await self._follow(message, self.previous)
        if self.named is not None:
            conversations, sender = services_of(self.request).conversations, sender_of(self.request)
            await conversations.require(self.named, sender, TokenScope.CHAT)
            await self._check_results(self.named, message.client_id, history, messages)
            if not self.adds_items:
                results = tuple(one for one in message.preceding if one.role == "tool")
                message = replace(message, preceding=results)
            return await self._send(replace(message, conversation=self.named))
        check_transcript_results((*history, *messages))
        if not history:
            return await self._send(replace(message, history=(), one_shot=True))
        return await self._continue(message, history)

    async def _check_results(
        self,
        conversation: str,
        client_id: str | None,
        history: Sequence[Message],
        messages: Sequence[Message],
    ) -> None:
        turn = turn_id(conversation, client_id) if client_id is not None else None
        await check_conversation_results(
            services_of(self.request).turns, conversation, turn, history, messages
        )

    async def record_transcript(self, transcript: Sequence[Message], accepted: MessageAccepted) -> None:
        """Record the transcript that the client now has, so that its next request is recognised. Clients that
        name their conversation need no record."""
        if self.named is None and self.previous is None:
            transcripts = services_of(self.request).transcripts
            await transcripts.record(
                *self._transcript_owner, transcript, accepted.conversation, accepted.turn
            )

    @property
    def _transcript_owner(self) -> tuple[str, str]:
        return sender_of(self.request).identity.id, self.message.block or ""

    async def _client_id(self, messages: Sequence[Message]) -> str | None:
        """Return the client id: the client's own, else one that a retry of this request finds again.

        None when the client sends neither an id nor a retry count.
        """
        if self.message.client_id is not None or self.retry_count is None:
            return self.message.client_id
        place = self.named or (self.previous.request.turn if self.previous is not None else "")
        return await services_of(self.request).transcripts.client_id_for(
            *self._transcript_owner, messages, place, is_repeat=self.retry_count != "0"
        )

    async def _follow(self, message: SendMessage, previous: TurnState) -> MessageAccepted:
        """Send a message that continues a turn: in its conversation, or in a fork if something else followed there."""
        check_following_results(previous, message.preceding)
        client_id, services = message.client_id or new_id(), services_of(self.request)
        conversation, turn = previous.request.conversation, previous.request.turn
        match await services.transcripts.follow(conversation, turn, client_id):
            case ContinuedConversation():
                return await self._send(replace(message, conversation=conversation, client_id=client_id))
            case ForkedConversation(origin):
                return await services.messages.send(message, sender_of(self.request), after=origin)
        raise refusal(
            ErrorCode.CONFLICT,
            "Another message continued this response before it was complete. Wait for its end.",
        )

    async def _continue(self, message: SendMessage, history: Sequence[Message]) -> MessageAccepted:
        client_id = message.client_id or new_id()
        match await services_of(self.request).transcripts.find(*self._transcript_owner, history, client_id):
            case ContinuedConversation(conversation):
                try:
                    return await self._send(replace(message, conversation=conversation, client_id=client_id))
                except Refusal as error:
                    if error.code != ErrorCode.NOT_FOUND:  # NOT_FOUND: the conversation was deleted
                        raise
            case ForkedConversation(origin):
                return await services_of(self.request).messages.send(
                    message, sender_of(self.request), after=origin
                )
        return await self._send(replace(message, history=tuple(history)))

    async def _send(self, message: SendMessage) -> MessageAccepted:
        return await services_of(self.request).messages.send(message, sender_of(self.request))
