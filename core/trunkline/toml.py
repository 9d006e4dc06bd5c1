"""TOML that others may have written: a block's settings, preferences. Pure.

Python's ``tomllib`` takes time by the square of a dotted key's length, falls over what is nested, and lets the error of
a number that is too long pass as it is. Agents may write ``preferences.toml``, which every turn reads. So what could
hold a worker up is refused before it is parsed, as text that is no TOML is.
"""

import tomllib
from typing import Any

LARGEST = 128 * 1024
"""Characters of a text."""

MOST_DOTS = 500
"""In one line: a key of so many parts costs some milliseconds, and a text of such lines less than a second."""


class Unfit(tomllib.TOMLDecodeError):
    """The text is TOML, perhaps, and is not read."""

    def __init__(self, why: str) -> None:
        ValueError.__init__(self, why)


def read_toml(text: str) -> dict[str, Any]:
    """The table of a text.

    Raises:
        tomllib.TOMLDecodeError: it is no TOML; or it is longer than ``LARGEST``, has more than ``MOST_DOTS`` dots in a
            line, is nested too deeply, or holds a number of too many digits.
    """
    if len(text) > LARGEST:
        raise Unfit(f"it has {len(text)} characters; {LARGEST} is the most")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > MOST_DOTS:
            raise Unfit(f"line {number} has more than {MOST_DOTS} dots; write long texts in several lines")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise Unfit("it is nested too deeply") from error
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:
        raise Unfit(str(error)) from error
