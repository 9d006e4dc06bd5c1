"""A notice to the owner that answers no message."""

from datetime import datetime
from typing import Literal

import msgspec

from trunkline.contracts.blocks.notice_preferences import NoticeKind
from trunkline.contracts.sentences.catalogue import Sentence

NOTICE_PREFIX = "notice"
"""The first word of the keys under which a channel keeps its notices."""


class OwnerNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A notice. ``id`` is the same whenever the notice is sent again, in each channel. ``at`` is when it happened.
    Above ``text`` are ``sentences``, which the channel puts into the owner's language when it tells the notice.
    """

    id: str
    kind: NoticeKind
    text: str = ""
    sentences: tuple[Sentence, ...] = ()
    at: datetime


class KeptNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A notice in one channel. It is ``waiting`` for its time, being told (``telling``), ``told``, or ``passed``:
    another channel told the owner, or this one could not. One that needs nothing more has no text.
    """

    notice: OwnerNotice
    state: Literal["waiting", "telling", "told", "passed"] = "waiting"
