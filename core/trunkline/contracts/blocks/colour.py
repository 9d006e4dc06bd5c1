"""The colour of a block's agent, by which people tell blocks apart. Pure functions.

A name stands for a colour that each client chooses for its ground. A client that shows another colour keeps its hue and
makes it as light or dark as its ground needs.
"""

import re

COLOUR_NAMES = ("red", "orange", "yellow", "green", "teal", "blue", "purple", "pink")
"""The colours that have a name."""

COLOUR_RULE = f"one of {', '.join(COLOUR_NAMES)}, or #rrggbb"

_HEX = re.compile(r"#[0-9a-fA-F]{6}")


def check_colour(colour: str | None) -> None:
    """Raise ValueError if the text is no colour; None is no colour at all."""
    if colour is not None and colour not in COLOUR_NAMES and _HEX.fullmatch(colour) is None:
        raise ValueError(f"A colour is {COLOUR_RULE}")
