"""A tool that rolls dice."""

import random
from typing import Annotated

from msgspec import Meta

import trunkline

# A model may give any number: what these do not allow never reaches the function.
Count = Annotated[int, Meta(ge=1, le=100)]
Sides = Annotated[int, Meta(ge=2, le=1000)]


@trunkline.tool(effect="read")
def roll_dice(count: Count = 1, sides: Sides = 6) -> str:
    """Roll dice and tell what they show."""
    return " ".join(str(random.randint(1, sides)) for _ in range(count))


@trunkline.hookimpl
def trunkline_tools():
    return [roll_dice]
