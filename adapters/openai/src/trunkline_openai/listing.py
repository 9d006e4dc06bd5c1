"""The list of models as servers give it. No I/O in here."""

from typing import Any

import msgspec

from trunkline.api.model import Ability, ModelInfo

INPUTS: dict[str, Ability] = {"image": "images", "file": "documents"}
FEATURES: dict[str, Ability] = {
    "tools": "tools",
    "reasoning": "reasoning",
    "structured_outputs": "structured",
}
CAPABILITIES: dict[str, Ability] = {
    "function_calling": "tools",
    "vision": "images",
    "reasoning": "reasoning",
}


class _Architecture(msgspec.Struct):
    input_modalities: list[str] | None = None


class _TopProvider(msgspec.Struct):
    max_completion_tokens: int | None = None


class _ListedModel(msgspec.Struct):
    """A model as servers list it; each calls the size of the window by another name.

    OpenRouter lists ``architecture`` and ``supported_parameters``, Mistral ``capabilities``, Fireworks the
    ``supports_`` fields, and Groq ``max_completion_tokens``.
    """

    id: str
    max_model_len: int | None = None
    context_length: int | None = None
    context_window: int | None = None
    max_context_length: int | None = None
    max_completion_tokens: int | None = None
    top_provider: _TopProvider | None = None
    architecture: _Architecture | None = None
    supported_parameters: list[str] | None = None
    capabilities: Any = None
    supports_image_input: bool | None = None
    supports_tools: bool | None = None

    @property
    def info(self) -> ModelInfo:
        window = self.max_model_len or self.context_length or self.context_window or self.max_context_length
        most = self.max_completion_tokens or (self.top_provider or _TopProvider()).max_completion_tokens
        return ModelInfo(
            id=self.id, context_window=window or 0, max_output=most or 0, abilities=self._abilities()
        )

    def _abilities(self) -> frozenset[Ability] | None:
        """Return what the list says of the model, None if it says nothing."""
        if self.supported_parameters is not None:
            inputs = (self.architecture or _Architecture()).input_modalities or ()
            found: set[Ability] = {INPUTS[one] for one in inputs if one in INPUTS}
            found |= {FEATURES[one] for one in self.supported_parameters if one in FEATURES}
            return frozenset(found)
        if isinstance(self.capabilities, dict):
            given = self.capabilities
            return frozenset(ability for name, ability in CAPABILITIES.items() if given.get(name) is True)
        if self.supports_tools is not None:
            shown: dict[Ability, bool | None] = {
                "tools": self.supports_tools,
                "images": self.supports_image_input,
            }
            return frozenset(ability for ability, able in shown.items() if able)
        return None


class _ModelListing(msgspec.Struct):
    data: list[_ListedModel] | None = None


def listed_models(answer: Any) -> tuple[ModelInfo, ...]:
    """Return the models of an answer of ``GET /models``. Some servers answer with the bare list.

    Raises:
        msgspec.ValidationError: it is no list of models.
    """
    if isinstance(answer, list):
        answer = {"data": answer}
    return tuple(model.info for model in msgspec.convert(answer, _ModelListing).data or ())
