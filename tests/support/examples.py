"""The number of hypothesis examples for a test that needs more than others do."""

from typing import Any

from hypothesis import settings


def examples(count: int, **options: Any) -> settings:
    """Settings with ``count`` examples. ``make check`` tries as few as for any other test; ``make test`` tries all."""
    profile = settings.get_current_profile_name()
    fewer = min(count, settings.get_profile(profile).max_examples) if profile == "check" else count
    return settings(max_examples=fewer, **options)
