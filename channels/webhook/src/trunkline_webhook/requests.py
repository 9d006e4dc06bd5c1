"""Takes signed requests to the gateway."""

import hashlib
from collections import defaultdict

import anyio

from trunkline import RemoteFault
from trunkline.api.channel import Chats, ChatState, DeliveryState, Gateway, decide_by_words, parse_decision
from trunkline.api.gateway import MessageAccepted, SendMessage
from trunkline_webhook.app import WebhookRequest, WebhookResponse
from trunkline_webhook.deliveries import WebhookDeliveries, began_now
from trunkline_webhook.settings import ACCOUNT, Webhook, WebhookSettings


class WebhookRequests:
    """Accepts the requests of all webhooks.

    Guarantees: a request that is repeated begins one turn and is answered as before. When ``accept`` returns, the
    message and what answers it are on disk.
    """

    def __init__(self, settings: WebhookSettings, gateway: Gateway, deliveries: WebhookDeliveries) -> None:
        self._settings = settings
        self._gateway = gateway
        self._deliveries = deliveries
        self._chats = Chats(gateway.records(), ACCOUNT, None)
        self._locks: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    async def accept(self, request: WebhookRequest) -> WebhookResponse:
        """Bring a request to where no crash loses it.

        Raises:
            RemoteFault: the gateway refuses the message.
            Unavailable: the gateway or the bus does not answer. The request may be sent again.
        """
        webhook = self._settings.webhooks[request.webhook]
        said = await self._decided(webhook, request.message.text)
        if said is not None:
            return WebhookResponse(text=said)
        async with self._locks[request.webhook]:  # two requests with a new thread are one conversation
            id = f"answer:{request.webhook}:{request.id}"
            known = await self._deliveries.find(id)
            if known is not None:
                return WebhookResponse(conversation=known.conversation, turn=known.turn)
            accepted = await self._send(request, webhook)
            if webhook.url:
                details = {"began": began_now(), "request": request.id, "thread": request.message.thread}
                state = DeliveryState(
                    id=id,
                    place=request.webhook,
                    conversation=accepted.conversation,
                    turn=accepted.turn,
                    details=details,
                )
                await self._deliveries.add(state)
        return WebhookResponse(conversation=accepted.conversation, turn=accepted.turn)

    async def _decided(self, webhook: Webhook, text: str) -> str | None:
        """Carry out a decision and return what to say; None for a message to the agent."""
        if webhook.prompt or parse_decision(text, say=self._gateway.sentences) is None:
            return None
        return (
            await decide_by_words(self._gateway, text)
            if webhook.decides
            else self._gateway.sentences("decision.not_here")
        )

    async def _send(self, request: WebhookRequest, webhook: Webhook) -> MessageAccepted:
        thread = request.message.thread
        key = f"{request.webhook}.{_hashed(thread)}"
        known = (await self._chats.get(key)).conversation if thread else None
        message = SendMessage(
            content=request.message.text,
            client_id=f"webhook:{request.webhook}:{_hashed(request.id)}",
            conversation=known,
            block=webhook.block if known is None else None,
            trigger="webhook",  # a program wrote the text, so that it is never carried out as a command
        )
        try:
            accepted = await self._gateway.send(message)
        except RemoteFault as fault:
            if known is None or fault.code != "not_found":
                raise
            await self._chats.put(key, ChatState())  # the conversation was deleted: begin another one
            return await self._send(request, webhook)
        if thread:
            await self._chats.put(key, ChatState(conversation=accepted.conversation, turn=accepted.turn))
        return accepted


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
