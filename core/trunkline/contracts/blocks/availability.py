"""Which blocks take messages, and what is said of those that take none: the same at the gateway and the bare loop."""

from trunkline.contracts.blocks.messages import BlockConfig


def block_not_found(name: str) -> str:
    """Return the sentence for a block that does not exist."""
    return f"There is no block called {name!r}."


def unavailable_reason(name: str, config: BlockConfig, problem: str) -> str:
    """Why a block takes no messages; "" for one that does. ``problem`` says which file about it cannot be read."""
    if problem:
        return f"The block {name!r} accepts no messages until a person corrects a file. {problem}"
    if not config.enabled:
        return f"The block {name!r} is switched off. Switch it on: trunkline blocks start {name}"
    return ""
