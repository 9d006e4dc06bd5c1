"""The reason why a block accepts no messages, shared by the gateway and the bare loop."""

from trunkline.contracts.blocks.messages import BlockConfig


def block_not_found(name: str) -> str:
    """Return the sentence for a block that does not exist."""
    return f"There is no block called {name!r}. All blocks: trunkline blocks list"


def unavailable_reason(name: str, config: BlockConfig, problem: str) -> str:
    """Return why a block accepts no messages; "" if it accepts them. ``problem`` names the file of the block that
    cannot be read, "" if there is none.
    """
    if problem:
        return f"The block {name!r} accepts no messages until a person corrects a file. {problem}"
    if not config.enabled:
        return f"The block {name!r} is switched off. Switch it on: trunkline blocks start {name}"
    return ""
