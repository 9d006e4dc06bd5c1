"""The section ``[plugins.compaction]``."""

from typing import Annotated

import msgspec

MessageCount = Annotated[int, msgspec.Meta(ge=0)]


class CompactionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.compaction]``.

    A conversation is compacted when its last request filled ``threshold`` of the model's window. Of a larger window,
    ``max_window`` tokens count: vendors charge more for a request with more than 200 000 or 272 000 tokens, and each
    request has the whole context. Its newest
    ``keep_messages`` messages stay (``keep_messages_on_command`` if a person asked for the compaction), but not more
    than fill ``keep_share`` of the window. With ``rebirth`` no message stays, and the summary is also written to the
    block's ``memory.md``.
    """

    threshold: Annotated[float, msgspec.Meta(ge=0.5, le=0.95)] = 0.8
    max_window: Annotated[int, msgspec.Meta(ge=1000)] = 250_000
    keep_messages: MessageCount = 6
    keep_messages_on_command: MessageCount = 2
    keep_share: Annotated[float, msgspec.Meta(gt=0, le=0.5)] = 0.25
    rebirth: bool = False
