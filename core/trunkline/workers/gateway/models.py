"""The model service: which model answers, which models there are, and the choice of a model for a conversation.

A monitor decides whether a model can be had. The choice is stored with the conversation, in memory.
"""

from trunkline._util.text import one_line
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.conversations.messages import AppendConversation, LoadConversation
from trunkline.contracts.gateway.answerer import Answerer, CheckModel, ChooseModel, GetAnswerer
from trunkline.contracts.models.listing import LISTING_SECONDS, ListModels, ModelListings
from trunkline.contracts.models.subjects import ANSWERER, CHECK_MODEL, LIST_MODELS
from trunkline.runtime.block_access import BlockAccess
from trunkline.workers.gateway.conversation_service import ConversationService
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.sender import Sender
from trunkline_bus import Bus

MAX_MODEL_CHARS = 200
"""Largest number of characters of a model's name."""

ALL_MESSAGES = 2**31
"""A number of messages that no conversation has, to load only what belongs to the conversation as a whole."""


class ModelService:
    """Answers questions about models, and stores the choice of a conversation.

    Methods raise Refusal with a fixed code, and BusError when memory or no monitor answers.
    """

    def __init__(
        self, bus: Bus, conversations: ConversationService, access: BlockAccess, default: str
    ) -> None:
        self._bus = bus
        self._access = access
        self._conversations = conversations
        self._default = default

    async def answerer(self, asked: GetAnswerer, sender: Sender) -> Answerer:
        """Return the model that would answer in a block, or in a conversation. Refused with ``not_found``."""
        block, chosen = asked.block or self._default, None
        if asked.conversation is not None:
            block, chosen = await self._chosen(asked.conversation, sender)
        else:
            await self._access.require(sender.identity, TokenScope.READ, block)
        return await self._answerer(block, chosen)

    async def list_models(self, asked: ListModels) -> ModelListings:
        """Return the models of the configured adapters."""
        return await self._bus.call(LIST_MODELS, asked, timeout=LISTING_SECONDS + 5.0, repeatable=True)

    async def choose(self, choice: ChooseModel, sender: Sender) -> Answerer:
        """Choose the model of a conversation, and return who answers there from now on. Without a conversation, check
        the model.

        Refused with ``not_found``, with ``forbidden`` for anyone who does not operate the block, and with
        ``invalid_request`` for a model that cannot be had; the reason names the nearest models.
        """
        block = self._default
        if choice.conversation is None:
            await self._access.require(sender.identity, TokenScope.OPERATE, block)
        else:
            block = await self._conversations.require(choice.conversation, sender, TokenScope.OPERATE)
        label = await self._checked(choice.model) if choice.model is not None else ""
        if choice.conversation is None:
            return await self._answerer(block, label or None)
        append = AppendConversation(
            block=block,
            conversation=choice.conversation,
            messages=(),
            actor=sender.identity.id,
            model=label,
        )
        await self._conversations.store(append)
        return await self._answerer(block, label or None)

    async def _checked(self, model: str) -> str:
        """Return the name to store, as ``adapter/model``. Raises InvalidField."""
        if not model.strip() or len(model) > MAX_MODEL_CHARS or one_line(model) != model:
            raise InvalidField(("model",), f"It must be a name of 1 to {MAX_MODEL_CHARS} characters.")
        found = await self._bus.call(
            CHECK_MODEL, CheckModel(model=model), timeout=LISTING_SECONDS + 5.0, repeatable=True
        )
        if found.problem:
            raise InvalidField(("model",), found.problem)
        return found.label

    async def _chosen(self, conversation: str, sender: Sender) -> tuple[str, str | None]:
        """Return the block of a conversation, and the model that was chosen for it."""
        block = await self._conversations.require(conversation, sender, TokenScope.READ)
        request = LoadConversation(block=block, conversation=conversation, after=ALL_MESSAGES)
        return block, (await self._conversations.load(request)).model

    async def _answerer(self, block: str, chosen: str | None) -> Answerer:
        request = GetAnswerer(block=block, chosen=chosen)
        return await self._bus.call(ANSWERER, request, timeout=5.0, repeatable=True)
