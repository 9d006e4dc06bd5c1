"""Upper estimates of what a vendor bills for a request whose answer did not reach its end. Pure."""

from datetime import datetime

from msgspec.structs import replace

from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.costs.messages import CostEntry, RequestOpened, RequestStatus
from trunkline.contracts.models.adapter import Call, ModelEvent, ModelRequest, Reasoning, Text
from trunkline.contracts.models.prices import Rate
from trunkline.contracts.models.token_estimate import MIN_BYTES_PER_TOKEN, estimate_input_tokens
from trunkline.errors import ErrorCode, ModelError

HIDDEN_TOKENS_PER_SECOND = 150
"""Tokens that a model may produce in a second without showing them: reasoning, or an answer that nobody received. Fast
vendors of large models produce about as many."""

SHORT_PAUSE = 2.0
"""Seconds between two parts of an answer in which a model is taken to produce nothing but the next part."""

UNBILLED_FAULTS = frozenset({"authentication", "rate_limited", "refused", "unavailable"})
"""Faults with which a vendor refuses a request instead of answering it. Vendors bill no tokens for these."""


def opened_request(entry: CostEntry, request: ModelRequest, rate: Rate | None) -> RequestOpened:
    """Return the record of a request that is about to be sent. ``entry`` has its sender, model and time."""
    tokens = estimate_input_tokens(request)
    guess = replace(entry, status="interrupted", estimated=True, usage=Usage(input_tokens=tokens))
    if rate is None:
        return RequestOpened(entry=guess)
    cost = rate.estimate(request)
    return RequestOpened(
        entry=replace(guess, cost=cost, price=rate.version),
        input_cost=cost,
        token_cost=float(rate.base.highest_output),
        max_cost=rate.max_cost(request),
    )


class Progress:
    """The part of an answer that has arrived: its bytes, and the seconds of silence before and between them."""

    def __init__(self) -> None:
        self.size = 0
        self.began = False
        self._silence = 0.0
        self._last = 0.0

    def silence(self, seconds: float) -> float:
        """Return the seconds of silence until ``seconds`` after the request was sent."""
        pause = seconds - self._last
        return self._silence + (pause if pause > SHORT_PAUSE or not self.began else 0.0)

    def add(self, event: ModelEvent, seconds: float) -> None:
        """Count an event that arrived ``seconds`` after the request was sent."""
        self._silence = self.silence(seconds)
        self.began, self._last = True, seconds
        match event:
            case Text(text) | Reasoning(text):
                self.size += len(text.encode(errors="replace"))
            case Call(call):
                self.size += len(repr(call.arguments)) + len(call.name)


def unfinished_entry(
    opened: RequestOpened,
    status: RequestStatus,
    progress: Progress,
    seconds: float,
    error: ModelError | None = None,
) -> CostEntry:
    """Return the entry of a request that failed or was cancelled after ``seconds``."""
    entry = replace(
        opened.entry, status=status, fault=error.fault if error else "", seconds=round(seconds, 3)
    )
    if not progress.began and error is not None and _is_unbilled(error):
        free = None if entry.cost is None else 0
        return replace(entry, usage=Usage(), cost=free, estimated=False)
    hidden = int(progress.silence(seconds) * HIDDEN_TOKENS_PER_SECOND)
    tokens = -(-progress.size // MIN_BYTES_PER_TOKEN) + hidden
    return _with_answer(entry, opened, tokens)


def interrupted_entry(opened: RequestOpened, now: datetime) -> CostEntry:
    """Return the entry of a request whose worker died some time before ``now``."""
    seconds = max(0.0, (now - opened.entry.at).total_seconds())
    entry = replace(opened.entry, seconds=round(seconds, 3))
    return _with_answer(entry, opened, int(seconds * HIDDEN_TOKENS_PER_SECOND))


def _is_unbilled(error: ModelError) -> bool:
    return error.fault in UNBILLED_FAULTS or error.code is ErrorCode.CONTEXT_OVERFLOW


def _with_answer(entry: CostEntry, opened: RequestOpened, tokens: int) -> CostEntry:
    """Return the entry with this many tokens of an answer, but no more than the request permits."""
    if opened.token_cost:
        tokens = min(tokens, int((opened.max_cost - opened.input_cost) / opened.token_cost))
    usage = replace(entry.usage, output_tokens=tokens)
    if entry.cost is None:
        return replace(entry, usage=usage)
    return replace(entry, usage=usage, cost=opened.input_cost + round(tokens * opened.token_cost))
