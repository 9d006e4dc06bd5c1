"""Checks of channels: the accounts with which they serve people."""

import msgspec

from trunkline.cli.checks.check import CheckContext, ok, warning
from trunkline.contracts.channels.records import CHANNEL_BUCKET, STATE_PREFIX, AccountState
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline_bus import BusError


async def channels_accounts(context: CheckContext) -> HealthResult | None:
    """channels.accounts: each account of a channel receives messages, and no second process waits for it."""
    if context.bus is None:
        return None
    try:
        entries = await context.bus.kv(CHANNEL_BUCKET).entries(f"*.{STATE_PREFIX}.>")
    except BusError:
        return None
    states = [
        (entry.key.partition(".")[0], msgspec.json.decode(entry.value, type=AccountState))
        for entry in entries
        if entry.value is not None
    ]
    wrong = [f"{channel}: {one.text}" for channel, one in states if one.state != "serving"]
    if wrong:
        hint = "A second process takes over when the first one ends. The log has the reason of a failure."
        return warning(f"{'; '.join(sorted(wrong))}", hint)
    serving = "; ".join(sorted(f"{channel}: {one.text}" for channel, one in states))
    return ok(serving or "No channel has an account that receives messages")
