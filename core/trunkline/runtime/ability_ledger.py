"""The cost ledger's entries of requests for vectors, transcripts and speech."""

from datetime import UTC, datetime
from types import TracebackType

import anyio
import msgspec
from msgspec.structs import replace
from opentelemetry import trace

from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.costs.estimate import UNBILLED_FAULTS
from trunkline.contracts.costs.messages import CostEntry, RequestOpened, RequestStatus
from trunkline.contracts.models.adapter import ModelRequest
from trunkline.contracts.models.media_usage import NO_MEDIA, MediaUsage
from trunkline.contracts.models.prices import PriceTable
from trunkline.contracts.models.token_estimate import MIN_BYTES_PER_TOKEN
from trunkline.errors import ModelError
from trunkline.runtime.cost_ledger import CostLedger, short_model_name
from trunkline_bus import new_id

AUDIO_BYTES_PER_SECOND = 2_000
"""The bytes of a second of audio in the estimate: those of speech in Opus. Other formats need more, so that the
estimate is rather too high.
"""

AUDIO_TOKENS_PER_SECOND = 32
"""The tokens of a second of audio that vendors count, at most."""

SPOKEN_TOKENS_PER_CHARACTER = 2
"""The tokens of audio for a character of text, at most."""


class Amount(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens and other amounts of a request, counted by the vendor or estimated."""

    usage: Usage = Usage()
    media: MediaUsage = NO_MEDIA


def estimate_texts(texts: tuple[str, ...]) -> Amount:
    """Return an upper estimate for the vectors of texts."""
    return Amount(usage=Usage(input_tokens=sum(map(_tokens, texts))))


def estimate_recording(size: int) -> Amount:
    """Return an upper estimate for the transcript of a recording of ``size`` bytes."""
    seconds = size / AUDIO_BYTES_PER_SECOND
    tokens = int(seconds * AUDIO_TOKENS_PER_SECOND)
    return Amount(usage=Usage(input_tokens=tokens), media=MediaUsage(seconds=seconds))


def estimate_speech(text: str) -> Amount:
    """Return an upper estimate for speech."""
    usage = Usage(input_tokens=_tokens(text), output_tokens=SPOKEN_TOKENS_PER_CHARACTER * len(text))
    return Amount(usage=usage, media=MediaUsage(characters=len(text)))


def _tokens(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // MIN_BYTES_PER_TOKEN)


class AbilityRecord:
    """A request that is recorded while the context is open. ``entry`` has its sender and model.

    Entering the context stores the opened record, so nothing may be sent before. Leaving it stores the entry: that of
    ``finish``, else an estimate. Raises ModelError if the opened record cannot be stored.
    """

    def __init__(self, ledger: CostLedger, prices: PriceTable, entry: CostEntry, estimate: Amount) -> None:
        self._ledger = ledger
        self._prices = prices
        self._entry = self._priced(replace(entry, status="interrupted", estimated=True), estimate)
        self._end: CostEntry | None = None
        self._sequence = 0
        self._began = 0.0

    async def __aenter__(self) -> "AbilityRecord":
        # No token of an answer is billed apart, so the estimate of a dead worker's request is the cost of its input.
        cost = self._entry.cost or 0
        opened = RequestOpened(entry=self._entry, input_cost=cost, token_cost=1.0, max_cost=cost)
        self._sequence = await self._ledger.open(opened)
        self._began = anyio.current_time()
        return self

    def finish(self, model: str, counted: Amount) -> CostEntry:
        """Note the end of a successful request, and return its entry with the cost."""
        entry = replace(self._entry, status="finished", estimated=False, model=short_model_name(model))
        self._end = self._priced(entry, counted)
        return self._end

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        entry = self._end or self._unfinished(error)
        seconds = round(anyio.current_time() - self._began, 3)
        await self._ledger.close(replace(entry, seconds=seconds), self._sequence)

    def _unfinished(self, error: BaseException | None) -> CostEntry:
        status: RequestStatus = "failed" if isinstance(error, Exception) else "cancelled"
        if isinstance(error, ModelError) and error.fault in UNBILLED_FAULTS:
            free = None if self._entry.cost is None else 0
            return replace(
                self._entry, status=status, fault=error.fault, usage=Usage(), media=NO_MEDIA, cost=free,
                estimated=False,
            )  # fmt: skip
        fault = error.fault if isinstance(error, ModelError) else ""
        return replace(self._entry, status=status, fault=fault)

    def _priced(self, entry: CostEntry, amount: Amount) -> CostEntry:
        """Return the entry with its amounts and their price. The requested name of the model has precedence over that
        with which the vendor answered.
        """
        requested = f"{entry.adapter}/{entry.requested}" if entry.requested else entry.adapter
        answering = f"{entry.adapter}/{entry.model}" if entry.model else requested
        rate = self._prices.find_rate(requested, answering)
        entry = replace(entry, usage=amount.usage, media=amount.media)
        if rate is None:
            return replace(entry, cost=None, price="")
        return replace(entry, cost=rate.cost(amount.usage, amount.media), price=rate.version)


class AbilityLedger:
    """Records the requests for vectors, transcripts and speech of one worker. ``ledger`` is that worker's."""

    def __init__(self, ledger: CostLedger, prices: PriceTable, worker: str) -> None:
        self._ledger = ledger
        self._prices = prices
        self._worker = worker

    def request(self, request: ModelRequest, vendor: str, estimate: Amount) -> AbilityRecord:
        """Return the record of a request that is about to be sent. ``request`` has its sender, operation, adapter
        and model.
        """
        span = trace.get_current_span().get_span_context()
        entry = CostEntry(
            id=request.id or new_id("request"),  # a middleware may have lost it
            at=datetime.now(UTC),
            block=request.block,
            conversation=request.conversation,
            turn=request.turn,
            actor=request.actor,
            trace=f"{span.trace_id:032x}" if span.is_valid else "",
            purpose=request.purpose,
            operation=request.operation,
            adapter=request.adapter,
            vendor=vendor,
            requested=request.model,
            status="interrupted",
            worker=self._worker,
        )
        return AbilityRecord(self._ledger, self._prices, entry, estimate)
