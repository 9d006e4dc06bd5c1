"""The owner's choices about learning: the table ``[learning]`` of ``preferences.toml``. Off unless it says ``on``."""

import logging
import tomllib
from typing import Annotated

import msgspec

from trunkline.messages.blocks import BlockConfig
from trunkline.toml import read_toml
from trunkline_learning.verdicts import Markers

log = logging.getLogger(__name__)

FILE = "preferences.toml"
NO_MODEL = "none"


class Learning(msgspec.Struct, frozen=True, kw_only=True):
    """What is learned, and what it may cost.

    ``model`` is ``adapter/model``; None the one that answers in the block; ``none`` asks no model at all, and words
    alone decide. ``max_cost_usd`` is for all questions about one turn. Each of the four parts can be switched off.
    """

    on: bool = False
    model: str | None = None
    max_cost_usd: Annotated[float, msgspec.Meta(ge=0.0)] = 0.02
    facts: bool = True
    episodes: bool = True
    playbook: bool = True
    profile: bool = True
    markers: Markers = Markers()

    @property
    def asks(self) -> bool:
        """Whether a model is asked."""
        return self.model != NO_MODEL and self.max_cost_usd > 0


def is_remembered(block_file: str | None) -> bool:
    """Whether a block's policy lets anything be remembered; one that cannot be read does not (RLM-F21)."""
    if block_file is None:
        return True
    try:
        return msgspec.convert(read_toml(block_file), BlockConfig).memory.enabled
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        log.warning("a block.toml is not usable, so nothing is learned there: %s", error)
        return False


class _Preferences(msgspec.Struct, frozen=True):
    learning: Learning = Learning()


def learning_in(text: str | None) -> Learning:
    """The choices in the text of ``preferences.toml``; a text that cannot be read is a reported gap: nothing is learned
    (PA-F43)."""
    if text is None:
        return Learning()
    try:
        return msgspec.convert(read_toml(text), _Preferences).learning
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        log.warning("%s is not usable, so nothing is learned: %s", FILE, error)
        return Learning()
