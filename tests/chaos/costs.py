"""The cost ledger, compared with what the vendor bills. No I/O."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trunkline.contracts.costs.messages import CostEntry


@dataclass(frozen=True, slots=True)
class Bill:
    """The tokens, of input and output, that the vendor bills for one request. An answer that was cut is billed as far
    as it was sent."""

    tokens: tuple[int, int]


def bill_of(request: dict[str, Any]) -> Bill:
    """Return the bill of a request that the scripted provider recorded."""
    given, made = request["billed"]
    return Bill((given, made))


def judge_costs(entries: Iterable[CostEntry], bills: Iterable[Bill]) -> Iterator[str]:
    """Yield the contradictions: a request without an entry, an exact cost that was never billed, and estimates that are
    lower than the bills.
    """
    entries, bills = list({entry.id: entry for entry in entries}.values()), list(bills)
    if len(entries) < len(bills):
        yield f"the vendor got {len(bills)} requests, and the ledger has {len(entries)}"
    exact = [entry for entry in entries if entry.status == "finished" and not entry.estimated]
    recorded = Counter((entry.usage.input_tokens, entry.usage.output_tokens) for entry in exact)
    # A monitor that has the vendor's count may disconnect before the vendor has sent the end of the stream.
    if invented := recorded - Counter(bill.tokens for bill in bills):
        yield f"the ledger has costs that the vendor never billed: {dict(invented)}"
    rest = Counter(bill.tokens for bill in bills) - recorded
    owed = sum((given + made) * count for (given, made), count in rest.items())
    estimated = sum(
        entry.usage.input_tokens + entry.usage.output_tokens for entry in entries if entry not in exact
    )
    if estimated < owed:
        yield f"{rest.total()} requests were cut; the vendor bills {owed} tokens, the ledger has {estimated}"
