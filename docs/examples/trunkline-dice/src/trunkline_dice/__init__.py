"""A tool that rolls dice."""

import random

import trunkline


@trunkline.tool(effect="read")
def roll_dice(count: int = 1, sides: int = 6) -> str:
    """Roll dice and tell what they show."""
    return " ".join(str(random.randint(1, sides)) for _ in range(count))


@trunkline.hookimpl
def trunkline_tools():
    return [roll_dice]
