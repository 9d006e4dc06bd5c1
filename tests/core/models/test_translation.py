"""What adapters share to translate a vendor's answers."""

import pytest

from trunkline.api.model import Usage, model_error, retry_after, with_cure


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


@pytest.mark.parametrize(
    ("detail", "unknown"),
    [
        ("HTTP 404: The model `gpt-9` does not exist", True),
        ("HTTP 400 ValidationException: The provided model identifier is invalid.", True),
        ("HTTP 400: x/y is not a valid model ID", True),
        ("HTTP 400: Invalid model: mistral-huge", True),
        ("HTTP 400: Model Not Exist", True),
        ("HTTP 400: max_tokens is too large for this model", False),
    ],
)
def test_an_unknown_model_is_known_by_each_vendors_words(detail: str, unknown: bool) -> None:
    """The cure names the adapter's section, and the command that lists the models. Another refusal has no such cure."""
    told = with_cure(model_error("refused", detail), "adapters.a").detail
    assert (
        'check model in [adapters.a], or where it was chosen; "trunkline models" lists the names' in told
    ) is unknown
