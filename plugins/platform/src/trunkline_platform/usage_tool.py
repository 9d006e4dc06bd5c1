"""The tool that reports how many tokens the agent's block used, from the cost ledger in memory."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec

import trunkline
from trunkline import ToolError

Days = Annotated[int, msgspec.Meta(ge=1, le=31)]

MICRO = 1_000_000
"""The ledger counts in millionths of a dollar."""


class _Tokens(msgspec.Struct, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0


class _LedgerEntry(msgspec.Struct, frozen=True):
    """The part of an entry of the ledger that is summed. Of several entries with the same ``id`` the last one holds."""

    id: str
    block: str = ""
    conversation: str = ""
    usage: _Tokens = _Tokens()
    cost: int | None = None


@trunkline.tool(effect="read", in_plan_mode=True, derived=True)
async def get_token_usage(context: trunkline.ToolContext, days: Days = 1) -> dict[str, Any]:
    """Return how many requests to models, tokens and US dollars this conversation and your block used. Only for the
    owner. Requests of the last seconds may be missing.

    Args:
        days: How many days back, today included, in UTC.
    """
    if not context.administration.is_owner:
        raise ToolError("Only the owner may see what models cost.", kind="permission_denied")
    today = datetime.now(UTC).date()
    requests: dict[str, _LedgerEntry] = {}
    for back in range(days - 1, -1, -1):
        text = await _ledger(context.memory, f"/costs/{today - timedelta(days=back)}.jsonl")
        requests |= {one.id: one for one in _entries(text) if one.block == context.block}
    own = [one for one in requests.values() if one.conversation == context.conversation]
    return {"conversation": _sum(own), "block": _sum(requests.values()), "days": days}


async def _ledger(memory: trunkline.Memory, path: str) -> str:
    """Return the ledger of a day, "" if nothing was asked on it. Raises ToolError if it cannot be read, because the
    sum of nothing would be wrong.
    """
    try:
        return (await memory.read(path)).content
    except ToolError as error:
        if error.kind != "not_found":
            raise
        return ""


def _entries(text: str) -> Iterable[_LedgerEntry]:
    """Yield the entries of a file. A line that is no entry is ignored, as by ``trunkline costs``."""
    decoder = msgspec.json.Decoder(_LedgerEntry)
    for line in text.splitlines():
        try:
            yield decoder.decode(line)
        except msgspec.MsgspecError:
            continue


def _sum(requests: Iterable[_LedgerEntry]) -> dict[str, Any]:
    found = list(requests)
    return {
        "requests": len(found),
        "input_tokens": sum(one.usage.input_tokens for one in found),
        "output_tokens": sum(one.usage.output_tokens for one in found),
        "dollars": sum(one.cost or 0 for one in found) / MICRO,
        "requests_without_price": sum(one.cost is None for one in found),
    }
