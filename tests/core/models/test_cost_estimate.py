"""The cost of a request whose vendor never said what it counted: an upper estimate within the allowed answer."""

from datetime import UTC, datetime, timedelta

import pytest

from trunkline import ErrorCode, Message
from trunkline.api.model import ModelError, ModelFault, ModelRequest, Price, Text, Usage
from trunkline.contracts.costs.estimate import Progress, interrupted_entry, opened_request, unfinished_entry
from trunkline.contracts.costs.messages import CostEntry, RequestOpened
from trunkline.contracts.models.prices import Rate

RATE = Rate.from_price(Price(input=2.0, output=10.0))
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def opened(*, max_tokens: int | None = 1_000, rate: Rate | None = RATE) -> RequestOpened:
    """Return the record of a request with about 100 tokens."""
    entry = CostEntry(id="request_1", at=NOW, adapter="scripted", status="interrupted")
    message = Message(id="m", role="user", content="x" * 276)
    return opened_request(entry, ModelRequest(messages=(message,), max_tokens=max_tokens), rate)


def test_the_record_has_the_cost_of_input_and_of_the_longest_answer() -> None:
    """300 bytes are 100 tokens for 200 micro-USD; 1000 tokens of an answer cost 10 000 more."""
    record = opened()
    assert (record.input_cost, record.token_cost, record.max_cost) == (200, 10.0, 10_200)
    assert record.entry.estimated and record.entry.status == "interrupted"


@pytest.mark.parametrize("fault", ["authentication", "rate_limited", "refused", "unavailable"])
def test_a_refused_request_costs_nothing(fault: ModelFault) -> None:
    """The vendor did not answer, so it bills nothing, and that is no estimate."""
    error = ModelError(ErrorCode.PROVIDER_ERROR, fault)
    entry = unfinished_entry(opened(), "failed", Progress(), 1.0, error)
    assert (entry.cost, entry.usage, entry.estimated, entry.fault) == (0, Usage(), False, fault)


def test_a_request_that_exceeds_the_window_costs_nothing() -> None:
    """A vendor refuses it before it reads it."""
    error = ModelError(ErrorCode.CONTEXT_OVERFLOW, "refused")
    assert unfinished_entry(opened(), "failed", Progress(), 1.0, error).cost == 0


@pytest.mark.parametrize("fault", ["timeout", "interrupted", "bad_response"])
def test_a_request_without_an_answer_may_have_been_billed(fault: ModelFault) -> None:
    """The input counts, and what a model may have thought in the silence."""
    error = ModelError(ErrorCode.PROVIDER_ERROR, fault)
    entry = unfinished_entry(opened(), "failed", Progress(), 2.0, error)
    assert entry.estimated and entry.cost == 200 + 300 * 10


def test_the_text_that_arrived_counts() -> None:
    """A refusal in mid-stream does not make the text free."""
    progress = Progress()
    progress.add(Text("x" * 30), 0.0)
    error = ModelError(ErrorCode.PROVIDER_ERROR, "unavailable")
    entry = unfinished_entry(opened(), "cancelled", progress, 1.0, error)
    assert (entry.cost, entry.usage.output_tokens) == (200 + 10 * 10, 10)


def test_a_stall_in_mid_answer_counts_as_silence() -> None:
    """A model may think on after its first word, where nobody sees it, and the vendor bills that."""
    progress = Progress()
    for seconds in (0.0, 1.0, 5.0):  # a short pause, and one of 4 seconds
        progress.add(Text("x" * 15), seconds)
    entry = unfinished_entry(opened(max_tokens=5_000), "failed", progress, 15.0)
    assert entry.usage.output_tokens == 15 + (4 + 10) * 150


def test_an_estimate_does_not_exceed_the_longest_answer() -> None:
    """Also after an hour of silence, and after a crash that was found late."""
    assert unfinished_entry(opened(), "cancelled", Progress(), 3_600.0).cost == 10_200
    assert interrupted_entry(opened(), NOW + timedelta(days=1)).cost == 10_200


def test_an_interrupted_request_counts_by_its_time() -> None:
    """The crash was noticed two seconds after the request."""
    entry = interrupted_entry(opened(), NOW + timedelta(seconds=2))
    assert (entry.cost, entry.status, entry.seconds) == (200 + 300 * 10, "interrupted", 2.0)


def test_without_a_price_there_is_no_cost() -> None:
    """The tokens are estimated nevertheless."""
    entry = interrupted_entry(opened(rate=None), NOW + timedelta(seconds=2))
    assert entry.cost is None and entry.usage == Usage(input_tokens=100, output_tokens=300)
