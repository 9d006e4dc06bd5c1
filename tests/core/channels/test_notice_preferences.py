"""When and where the owner is told, by the table ``[notices]`` of ``preferences.toml``."""

from datetime import UTC, datetime, timedelta

import pytest

from trunkline._util.toml import SettingsFileError, read_settings
from trunkline.contracts.blocks.notice_preferences import NoticeKind, NoticePreferences
from trunkline.contracts.blocks.preferences import Preferences

AT = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
NIGHT = datetime(2026, 11, 27, 22, 30, tzinfo=UTC)  # half past eleven in Berlin


def preferences(text: str) -> NoticePreferences:
    """The preferences of a file."""
    return read_settings("preferences.toml", f"[notices]\n{text}", Preferences).notices


def test_without_preferences_every_channel_tells_at_once() -> None:
    """An owner who has chosen nothing is told as before."""
    assert Preferences().notices.due("approval", "telegram", AT) == AT


def test_a_kind_can_be_switched_off_and_one_must_be_switched_on() -> None:
    """An empty list means no channel; ``online`` is told only by channels that are named for it."""
    chosen = preferences('channels = ["telegram"]\n[notices.kinds]\ntask = []\nonline = ["email"]')
    assert chosen.due("task", "telegram", AT) is None and chosen.due("budget", "telegram", AT) == AT
    assert chosen.due("online", "email", AT) == AT and chosen.due("online", "telegram", AT) is None
    assert NoticePreferences().due("online", "telegram", AT) is None
    assert NoticePreferences().due("task", "telegram", AT) == AT


def test_the_next_channel_waits_and_others_stay_silent() -> None:
    """Each further channel waits once more, and a kind may have channels of its own."""
    chosen = preferences(
        'channels = ["telegram", "email"]\nescalate_minutes = 5\n[notices.kinds]\nbudget = ["email"]'
    )
    assert chosen.due("approval", "telegram", AT) == AT
    assert chosen.due("approval", "email", AT) == AT + timedelta(minutes=5)
    assert chosen.due("approval", "discord", AT) is None
    assert chosen.due("budget", "email", AT) == AT and chosen.due("budget", "telegram", AT) is None
    assert chosen.earlier("approval", "email") == ("telegram",)


@pytest.mark.parametrize(
    ("kind", "at", "due"),
    [
        ("message", AT, AT),
        ("message", NIGHT, datetime(2026, 11, 28, 6, 0, tzinfo=UTC)),
        ("message", NIGHT + timedelta(hours=4), datetime(2026, 11, 28, 6, 0, tzinfo=UTC)),
        ("message", datetime(2026, 7, 1, 3, 0, tzinfo=UTC), datetime(2026, 7, 1, 5, 0, tzinfo=UTC)),
        ("approval", NIGHT, NIGHT),
    ],
)
def test_quiet_hours_are_those_of_the_owners_time_zone(kind: NoticeKind, at: datetime, due: datetime) -> None:
    """They pass midnight, follow summer time, and only a kind that the owner calls urgent breaks them."""
    chosen = preferences('quiet = "22:00-07:00"\ntime_zone = "Europe/Berlin"\nurgent = ["approval"]')
    assert chosen.due(kind, "telegram", at) == due


def test_after_the_quiet_hours_channels_wait_for_each_other_again() -> None:
    """The second channel does not wake up together with the first."""
    chosen = preferences('channels = ["a", "b"]\nquiet = "22:00-07:00"\ntime_zone = "Europe/Berlin"')
    morning = datetime(2026, 11, 28, 6, 0, tzinfo=UTC)
    assert chosen.due("message", "a", NIGHT) == morning
    assert chosen.due("message", "b", NIGHT) == morning + timedelta(minutes=10)


@pytest.mark.parametrize(
    "text",
    ['quiet = "late"', 'quiet = "07:00-07:00"', 'time_zone = "Mars"', 'urgent = ["all"]', 'channel = ["a"]'],
)
def test_a_wrong_preference_is_refused(text: str) -> None:
    """The file is refused as a whole, and names what is wrong."""
    with pytest.raises(SettingsFileError):
        preferences(text)
