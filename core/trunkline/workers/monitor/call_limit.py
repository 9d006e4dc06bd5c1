"""How many tool calls of one answer are run. The others are refused one by one, so that no call is without a result."""

import logging
from collections.abc import Collection, Iterator

from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.turns.messages import ModelCallFinished, ToolFinished

log = logging.getLogger(__name__)


def refuse_excess_calls(
    answer: ModelCallFinished, client_tools: Collection[str], limit: int
) -> Iterator[ToolFinished]:
    """What the model is told of each call beyond the limit. Calls that its client runs are not ours to refuse."""
    ours = [call for call in answer.tool_calls if call.name not in client_tools]
    if len(ours) > limit:
        log.warning("an answer has %d tool calls; the first %d are run", len(ours), limit)
    for number, call in enumerate(ours[limit:], start=limit + 1):
        text = (
            f"{call.name} was not run: this is call {number} of {len(ours)} in one answer, and the first {limit} are "
            f"run. Call it again if it is still needed."
        )
        refused = ToolOutcome(call="", status="error", output=text, error_kind="rate_limited")
        yield ToolFinished(call_id=call.id, outcome=refused)
