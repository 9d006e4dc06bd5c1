"""The owner's settings for all blocks: ``preferences.toml`` in memory."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from trunkline.contracts.blocks.messages import Discovery
from trunkline.contracts.blocks.model_choice import RENAMED_KEYS, ModelTable, check_models
from trunkline.contracts.blocks.notice_preferences import NoticePreferences

PREFERENCES = "preferences.toml"


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """The owner's settings for all blocks. Those that a turn uses are as in ``BlockConfig``; ``notices`` says how the
    owner wants to be told, and ``language`` (a BCP 47 tag such as ``de``) in which language channels speak. Unknown
    keys are ignored; plugins may read them.
    """

    renamed: ClassVar[Mapping[str, tuple[str, str]]] = RENAMED_KEYS

    model: str | None = None
    models: ModelTable = {}
    discovery: Discovery | None = None
    always_send: tuple[str, ...] | None = None
    notices: NoticePreferences = NoticePreferences()
    language: str = "en"

    def __post_init__(self) -> None:
        check_models(self.models)
