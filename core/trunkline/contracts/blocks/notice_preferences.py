"""The owner's preferences for notices: the table ``[notices]`` of ``preferences.toml``. Pure."""

import re
from collections.abc import Mapping
from datetime import datetime, time, timedelta, tzinfo
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import msgspec

from trunkline_bus import Payload

NoticeKind = Literal["approval", "budget", "message", "task", "online"]
"""What a notice is about: a call or question that waits for the owner, a budget that is used up, a message of an agent
(``send_channel_message`` without a channel), a background task that has ended, or that the platform began or stopped to
serve a channel.
"""

NAMED_KINDS: frozenset[NoticeKind] = frozenset({"online"})
"""Kinds that are told only by the channels that ``kinds`` names for them."""

_QUIET = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]")


class NoticePreferences(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[notices]``. ``channels`` are the names of the channels that tell the owner, the first one first; empty means
    all channels at once. ``kinds`` has other channels for a kind of notice; an empty list there means that no channel
    tells it. The kind ``online`` is told only if it is there.

    The next channel is used when the one before did not help for ``escalate_minutes``: nobody has decided about the
    approval, or the notice could not be sent there.

    ``quiet`` is a time of the day, such as ``22:00-07:00``, in ``time_zone`` ("" for that of the machine). Notices wait
    for its end, except the kinds in ``urgent``.
    """

    channels: tuple[str, ...] = ()
    kinds: Mapping[NoticeKind, tuple[str, ...]] = {}
    escalate_minutes: Annotated[float, msgspec.Meta(ge=0, le=10_080)] = 10.0
    quiet: str = ""
    time_zone: str = ""
    urgent: tuple[NoticeKind, ...] = ()

    def __post_init__(self) -> None:
        if self.quiet and (_QUIET.fullmatch(self.quiet) is None or self.quiet[:5] == self.quiet[6:]):
            raise ValueError('notices.quiet is no time of the day, such as "22:00-07:00"')
        if self.time_zone:
            try:
                ZoneInfo(self.time_zone)
            except (KeyError, OSError, ValueError):
                raise ValueError(f"notices.time_zone: there is no time zone {self.time_zone!r}") from None

    def order(self, kind: NoticeKind) -> tuple[str, ...] | None:
        """Return the channels for a kind, the first one first; None for all channels at once. Raises nothing."""
        return self.kinds.get(kind, () if kind in NAMED_KINDS else self.channels or None)

    def earlier(self, kind: NoticeKind, channel: str) -> tuple[str, ...]:
        """Return the channels that are used before ``channel``. Raises nothing."""
        order = self.order(kind) or ()
        return order[: order.index(channel)] if channel in order else ()

    def due(self, kind: NoticeKind, channel: str, at: datetime) -> datetime | None:
        """Return when the channel tells the owner of what happened ``at``; None if it does not. Raises nothing."""
        order = self.order(kind)
        if order is not None and channel not in order:
            return None
        begin = self.after_quiet(kind, at)
        wait = timedelta(minutes=self.escalate_minutes) * len(self.earlier(kind, channel))
        return self.after_quiet(kind, begin + wait)

    def after_quiet(self, kind: NoticeKind, at: datetime) -> datetime:
        """Return ``at``, or the end of the quiet hours that it is in. Raises nothing."""
        if not self.quiet or kind in self.urgent:
            return at
        zone: tzinfo | None = ZoneInfo(self.time_zone) if self.time_zone else None
        here = at.astimezone(zone)
        begin, end = map(time.fromisoformat, self.quiet.split("-"))
        now = here.time()
        inside = begin <= now < end if begin < end else now >= begin or now < end
        if not inside:
            return at
        day = here.date() + timedelta(days=1 if now >= end else 0)
        wall = datetime.combine(day, end)
        return wall.replace(tzinfo=zone) if zone is not None else wall.astimezone()


class GetNoticePreferences(Payload, frozen=True, kw_only=True, tag="gateway.notices.v1"):
    """Ask how the owner wants to be told."""


class NoticePreferencesFound(Payload, frozen=True, kw_only=True, tag="gateway.notices-found.v1"):
    """The owner's preferences for notices, and the language of what channels say."""

    preferences: NoticePreferences
    language: str = "en"
