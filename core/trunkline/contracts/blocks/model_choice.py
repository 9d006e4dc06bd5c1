"""The model settings of a block and of the owner, and the order in which they count. Pure functions.

This is the only definition of that order; turns, completions and ``trunkline models --chosen`` use it.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

import msgspec

from trunkline.contracts.models.abilities import Purpose

if TYPE_CHECKING:
    from trunkline.contracts.blocks.messages import BlockConfig
    from trunkline.contracts.blocks.preferences import Preferences

CHAT = "turn"
"""The purpose of the answers to people. Its setting is ``model``."""

SUMMARY = "summary"
"""The purpose of summaries of documents and conversations."""

VISION = "vision"
"""The purpose of questions about images. Only a model that is set for it is asked."""

ABILITY_PURPOSES = frozenset({"embed", "transcribe", "speak"})
"""The purposes of requests for vectors, transcripts and speech. A chat model is never asked for them: without a setting
the adapter that answers uses its own model for the ability.
"""

PURPOSES: Mapping[str, str] = {
    CHAT: "answers to people",
    "route": "what kind of work a message asks for",
    SUMMARY: "summaries of documents and conversations",
    "heartbeat": "regular checks without a person",
    VISION: "questions about images",
    "embed": "vectors for programs",
    "transcribe": "text of speech",
    "speak": "speech of text",
    "learn": "learning from finished turns",
    "repl": "questions of retrieval code",
    "tool": "other questions of tools",
}
"""The purposes of the bundled plugins and workers. A plugin may use others."""

ModelTable = dict[Purpose, str]
"""The table ``[models]`` of ``block.toml`` and ``preferences.toml``: a model for each purpose, as ``adapter/model``."""

RENAMED_KEYS: Mapping[str, tuple[str, str]] = {"vision_model": ("models", VISION)}
"""Former keys of both files, with the table and key of now. A file may still have them."""


class PreferredModel(msgspec.Struct, frozen=True, kw_only=True):
    """The model that settings name for a purpose, and the setting that decided. ``model`` is None if none names one;
    then the default adapter answers. ``source`` is "" in that case.
    """

    model: str | None = None
    source: str = ""


def check_models(models: Mapping[str, str]) -> None:
    """Check the purposes of a table ``[models]``. Raises ValueError for one that looks like a typing error, because the
    text would go to another model than its author meant.
    """
    for purpose in models:
        if purpose in (CHAT, "chat"):
            raise ValueError(
                f"`{purpose}` is no key of [models]: `model` names the model for answers to people"
            )
        near = get_close_matches(purpose, PURPOSES, 1, cutoff=0.75)
        if near and near[0] != purpose:
            raise ValueError(f"there is no purpose `{purpose}`. Did you mean {near[0]}?")


def preferred_model(
    purpose: str, block: "BlockConfig", preferences: "Preferences", conversation: str | None = None
) -> PreferredModel:
    """Return the preferred model for a purpose.

    For answers to people: the ``conversation``'s, else ``model`` of the block, else ``model`` of the preferences. For
    another purpose: the purpose in ``[models]`` of the block, else of the preferences, else as for answers to people
    without a conversation. Vision and ``ABILITY_PURPOSES`` have no such substitute, because not every model can do
    that.
    """
    found = _named(purpose, block, preferences, conversation)
    return next((one for one in found if one.model), PreferredModel())


def _named(
    purpose: str, block: "BlockConfig", preferences: "Preferences", conversation: str | None
) -> Iterator[PreferredModel]:
    if purpose == CHAT:
        yield PreferredModel(model=conversation, source="/model in the conversation")
    else:
        key = f"models.{purpose}"
        yield PreferredModel(model=block.models.get(purpose), source=f"{key} in block.toml")
        yield PreferredModel(model=preferences.models.get(purpose), source=f"{key} in preferences.toml")
    if purpose != VISION and purpose not in ABILITY_PURPOSES:
        yield PreferredModel(model=block.model, source="model in block.toml")
        yield PreferredModel(model=preferences.model, source="model in preferences.toml")
