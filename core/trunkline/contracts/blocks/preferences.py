"""The owner's settings for all blocks: ``preferences.toml`` in memory."""

import msgspec

from trunkline.contracts.blocks.messages import Discovery

PREFERENCES = "preferences.toml"


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """The owner's settings that a turn uses. Unknown keys are ignored; plugins may read them."""

    model: str | None = None
    vision_model: str | None = None
    discovery: Discovery | None = None
    always_send: tuple[str, ...] | None = None
