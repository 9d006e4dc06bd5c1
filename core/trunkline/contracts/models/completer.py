"""A client for single requests to the monitor's models, for tools and background work."""

from collections.abc import Sequence
from typing import Protocol

from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.models.messages import Completion
from trunkline.errors import CompletionError, ErrorCode


class Completer(Protocol):
    """Calls the models of this installation on behalf of one block. The model is offered no tools, and nothing is
    stored.

    Guarantees: the request passes the model middleware, such as the budget, as a turn's calls do. Requests may run
    concurrently.

    Not guaranteed: that the model is called only once: if a monitor dies, another one calls the model again. A call
    that fails or is cancelled may cost money.
    """

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
        reasoning: bool = True,
    ) -> Completion:
        """Return the answer to a text or to messages. Cancelling this ends the call at the vendor too.

        Args:
            prompt: One message of the user, or complete messages in order.
            purpose: The purpose by which models are chosen and costs are grouped: lower-case letters, digits, ``-``
                and ``_``.
            model: ``adapter/model``, an adapter, or a model of the default adapter; None selects that of the purpose,
                else the block's or the owner's.
            max_tokens: The largest number of tokens of the answer.
            temperature: The temperature in the vendor's terms.
            max_cost: The largest cost in millionths of a US dollar. It limits nothing if the model has no price.
            timeout: The time limit in seconds; None sets no limit.
            reasoning: False asks a model that can reason not to, for a short answer that needs none.

        Raises:
            CompletionError: with a code, and a text for the model: ``over_budget`` (no request was sent,
                because of ``max_cost`` or a budget of the owner),
                ``timeout``, ``provider_error``, ``context_overflow``, ``engine_unavailable``, ``invalid_request``,
                and for messages with images ``no_vision_model``.
        """
        ...


class NoModel:
    """No model is available: on other hosts, and in tests without a model."""

    async def complete(self, prompt: str | Sequence[Message], **options: object) -> Completion:
        """Refuse. Raises CompletionError ``engine_unavailable`` in every case."""
        raise CompletionError(ErrorCode.ENGINE_UNAVAILABLE, "No model can be asked from here.")
