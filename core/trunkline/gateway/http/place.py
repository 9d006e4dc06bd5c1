"""Where an OpenAI client's message belongs: in the conversation that it names, else in the one whose messages it sends
along, else in a new one."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from starlette.requests import Request

from trunkline.errors import ErrorCode
from trunkline.gateway.http.parts import sender_of, services_of
from trunkline.gateway.transcripts import Continued, Forked
from trunkline.messages.conversation import Message
from trunkline.messages.gateway import MessageAccepted, SendMessage
from trunkline_bus import Refusal, new_id


@dataclass(frozen=True, slots=True)
class Place:
    """A message on its way in."""

    request: Request
    message: SendMessage

    @property
    def _named(self) -> str | None:
        return self.request.headers.get("x-conversation-id") or None

    async def send(self, history: Sequence[Message]) -> MessageAccepted:
        """Hand it in. ``history`` are the client's messages up to the last answer.

        In a named conversation only what is new counts: what the client's tools brought, and what the person says.
        """
        if self._named is not None:
            results = tuple(one for one in self.message.preceding if one.role == "tool")
            return await self._send(replace(self.message, conversation=self._named, preceding=results))
        if not history:
            return await self._send(replace(self.message, history=(), one_shot=True))
        return await self._go_on(history)

    async def keep(self, transcript: Sequence[Message], accepted: MessageAccepted) -> None:
        """Note what the client has been given, so that its next request is recognised. Not where it names them."""
        if self._named is None:
            transcripts = services_of(self.request).transcripts
            await transcripts.keep(*self._asker, transcript, accepted.conversation, accepted.turn)

    @property
    def _asker(self) -> tuple[str, str]:
        return sender_of(self.request).identity.id, self.message.block or ""

    async def _go_on(self, history: Sequence[Message]) -> MessageAccepted:
        message, client_id = self.message, self.message.client_id or new_id()
        match await services_of(self.request).transcripts.find(*self._asker, history, client_id):
            case Continued(conversation):
                try:
                    return await self._send(replace(message, conversation=conversation, client_id=client_id))
                except Refusal as error:
                    if error.code != ErrorCode.NOT_FOUND:  # else it was deleted
                        raise
            case Forked(origin):
                return await services_of(self.request).messages.send(
                    message, sender_of(self.request), after=origin
                )
        return await self._send(replace(message, history=tuple(history)))

    async def _send(self, message: SendMessage) -> MessageAccepted:
        return await services_of(self.request).messages.send(message, sender_of(self.request))
