"""A model that can be asked one question: what tools and background work are given of the monitor's models."""

from collections.abc import Sequence
from typing import Protocol

from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.models.messages import Completion
from trunkline.errors import CompletionError, ErrorCode


class Completer(Protocol):
    """Asks the models of this installation, for one block. No tools are offered and nothing is stored."""

    async def complete(
        self,
        prompt: str | Sequence[Message],
        *,
        purpose: str = "tool",
        model: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        max_cost: int | None = None,
        timeout: float | None = None,
    ) -> Completion:
        """The answer to a text or to messages. Cancelling this ends the call at the vendor too.

        Args:
            prompt: One message of the user, or whole messages in order.
            purpose: What it is for, as a ledger groups it: lower-case letters, digits, ``-`` and ``_``.
            model: ``adapter/model``, an adapter, or a model of the default adapter; None: the block's or the owner's.
            max_tokens: How long the answer may be.
            temperature: As the vendor has it.
            max_cost: In millionths of a US dollar. Without a price for the model it bounds nothing.
            timeout: In seconds.

        Raises:
            CompletionError: with a code, and a text for the model: ``over_budget`` (nothing was asked), ``timeout``,
                ``provider_error``, ``context_overflow``, ``engine_unavailable``, ``invalid_request``, and for
                messages with images ``no_vision_model``.
        """
        ...


class NoModel:
    """There is no model here: on other hosts, and in tests that give none."""

    async def complete(self, prompt: str | Sequence[Message], **options: object) -> Completion:
        """Refuse."""
        raise CompletionError(ErrorCode.ENGINE_UNAVAILABLE, "No model can be asked from here.")
