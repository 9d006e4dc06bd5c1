"""The sample tool: says hello. Put your own in its place."""

from collections.abc import Iterable

import trunkline


@trunkline.tool(effect="read")
def sample_hello(who: str = "world") -> str:
    """Say hello to somebody.

    Args:
        who: Whom to greet.
    """
    return f"Hello, {who}!"


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """Return the tools of this plugin."""
    return [sample_hello]
