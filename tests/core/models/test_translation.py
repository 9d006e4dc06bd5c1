"""What adapters share to translate a vendor's answers."""

import pytest

from trunkline.api.model import Usage, retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1e300"}, 86_400.0),
        ({"retry-after-ms": "1000000000000"}, 86_400.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 86_400.0),
        ({"retry-after": "1 Jan 10000 99999999999999999999:1:1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds, seconds or a date, never less than nothing; anything else says nothing."""
    assert retry_after(headers, now=1_792_567_680.0) == seconds


def test_no_usage_is_negative() -> None:
    """Some servers send negative numbers, and no cost is less than nothing."""
    wrong = Usage(
        input_tokens=-5, output_tokens=3, cached_tokens=-1, reasoning_tokens=-2, cache_write_tokens=-9
    )
    assert wrong == Usage(output_tokens=3)
