"""Reads the lists and details of models: ``GET /api/tags`` and ``POST /api/show``. Pure functions."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trunkline.api.model import Ability, ModelInfo

ABILITIES: Mapping[str, Ability] = {
    "completion": "structured",  # every model that answers takes a format
    "tools": "tools",
    "vision": "images",
    "thinking": "reasoning",
    "embedding": "embeddings",
}
"""The ability for each capability of the vendor."""

NUM_CTX = re.compile(r"^num_ctx\s+(\d+)\s*$", re.MULTILINE)
"""The size of the context window in the parameters of a model's Modelfile."""


class TaggedModel(msgspec.Struct):
    """A model in the list of the server."""

    model: str = ""
    name: str = ""

    @property
    def id(self) -> str:
        """The name of the model with its tag."""
        return self.model or self.name


class ModelTags(msgspec.Struct):
    """The models that the server has."""

    models: list[TaggedModel] | None = None

    @property
    def ids(self) -> list[str]:
        """The names of the models."""
        return [model.id for model in self.models or () if model.id]


class ShownModel(msgspec.Struct):
    """The details of a model."""

    parameters: str | None = None
    model_info: dict[str, Any] | None = None
    capabilities: list[str] | None = None

    def info(self, id: str, num_ctx: int | None) -> ModelInfo:
        """Return the description of the model. Its context window is ``num_ctx`` of the settings, else that of the
        Modelfile, else the largest that the model can have.
        """
        largest = self._context_length
        given = NUM_CTX.search(self.parameters or "")
        chosen = num_ctx or (int(given[1]) if given else 0)
        window = min(chosen, largest) if chosen and largest else chosen or largest
        abilities: frozenset[Ability] | None = None
        if self.capabilities is not None:
            abilities = frozenset(ABILITIES[name] for name in self.capabilities if name in ABILITIES)
        return ModelInfo(id=id, context_window=window, abilities=abilities)

    @property
    def _context_length(self) -> int:
        details = self.model_info or {}
        own = details.get(f"{details.get('general.architecture', '')}.context_length")
        found = [own, *(value for name, value in details.items() if name.endswith(".context_length"))]
        return next((value for value in found if isinstance(value, int)), 0)


def first_that_answers(models: Iterable[ModelInfo]) -> str:
    """Return the first model that can hold a conversation, "" if there is none."""
    for model in models:
        answers = "embed" not in model.id if model.abilities is None else "structured" in model.abilities
        if answers:
            return model.id
    return ""


def missing_models(names: Iterable[str], available: Iterable[str]) -> list[str]:
    """Return the models that are not available. A name without a tag has the tag ``latest``."""
    there = {_with_tag(name) for name in available}
    return [name for name in names if name and _with_tag(name) not in there]


def _with_tag(name: str) -> str:
    tagged = ":" in name.rpartition("/")[2]
    return (name if tagged else f"{name}:latest").lower()
