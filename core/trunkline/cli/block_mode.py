"""The mode of a block in a word or two, for a channel that shows it beside the conversation. Contains no command."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.cli._support.permissions import EffectivePermissions
    from trunkline.contracts.policies.messages import Policy
    from trunkline_bus import Bus

ASKING = {"all": "asks always", "some": "asks", "none": "asks never"}
"""The words for the calls about which a person is asked, by the choice ``approvals``."""


async def describe_mode(bus: "Bus", block: str, conversation: str | None) -> str:
    """Return the mode of a block's agent in a conversation: ``plan mode``, ``god mode``, ``asks always``, ``asks`` or
    ``asks never``. God mode comes first, because it permits most; then plan mode.

    Raises:
        ConfigError: there is no such block, or a file of its permissions cannot be read.
        Unavailable: memory does not answer.
    """
    from trunkline.cli._support.permissions import read_permissions
    from trunkline.errors import Unavailable
    from trunkline_bus import BusError, RemoteFault

    try:
        return _words(await read_permissions(bus, block), conversation)
    except RemoteFault:
        raise
    except BusError as error:
        raise Unavailable(f"The permissions of the block {block} are not known: {error}") from error


def _words(permissions: "EffectivePermissions", conversation: str | None) -> str:
    if any(_applies(one, "god-", conversation) for one in permissions.policies):
        return "god mode"
    chosen = {choice.name: choice.value for choice in permissions.choices}
    plans = any(_applies(one, "planning-", conversation) for one in permissions.policies)
    if plans or chosen["plan"] == "true":
        return "plan mode"
    return ASKING.get(chosen["approvals"], "asks")


def _applies(policy: "Policy", prefix: str, conversation: str | None) -> bool:
    """Report whether a policy with this beginning of its id holds in the conversation now."""
    from datetime import UTC, datetime

    conditions = policy.conditions
    if not policy.id.startswith(prefix) or conditions.conversation not in (None, conversation):
        return False
    return conditions.until is None or conditions.until > datetime.now(UTC)
