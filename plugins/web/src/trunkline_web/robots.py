"""The rules of a site's ``robots.txt`` (RFC 9309), read and matched by Protego."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from protego import Protego

MOST_BYTES = 500 * 1024
"""Bytes that are read of it (RFC 9309, 2.5)."""

LONGEST_DELAY = 5.0
"""Seconds; a site that wants longer pauses gets these."""

_VERSION = re.compile(r"^([ \t]*user-agent[ \t]*:[ \t]*[a-z_-]+)/\S*", re.IGNORECASE | re.MULTILINE)
"""The version of a user agent in a line that names one. Protego compares it; only the name before it counts."""


@dataclass(frozen=True, slots=True)
class RobotsPolicy:
    """The rules for one user agent. Without ``rules`` everything is allowed."""

    rules: "Protego | None" = None
    user_agent: str = ""

    @property
    def delay(self) -> float:
        """The seconds between two requests that the site asks for, within reason."""
        asked = self.rules.crawl_delay(self.user_agent) if self.rules else None
        return min(LONGEST_DELAY, max(0.0, asked or 0.0))

    def is_allowed(self, target: str) -> bool:
        """Report whether a path with its query may be asked for: of the patterns that match, the longest counts."""
        if self.rules is None:
            return True
        # Protego takes URLs: without an origin it would read the first name of a path "//a/b" as a host.
        return self.rules.can_fetch(f"http://host/{target.removeprefix('/')}", self.user_agent)


def parse_robots(text: str, user_agent: str) -> RobotsPolicy:
    """Return the rules for a user agent, matched by the part of its name before the version."""
    from protego import Protego

    return RobotsPolicy(Protego.parse(_VERSION.sub(r"\1", text)), user_agent.partition("/")[0])
