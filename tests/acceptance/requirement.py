"""An id of a specification: its subject, and either the tests that carry it or the issue that will build it."""

from dataclasses import dataclass

ISSUES = {
    14: "authentication, WebSocket, the web app",
    15: "Telegram and further channels, service installation",
    16: "sub-agents, router, lanes, schedules, workflows",
    17: "retrieval quality, memory at scale",
}
"""The issues that are not done. An id may wait for one of these and for no other."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """``tests`` are files or ``file::test`` besides the tests whose name or docstring has the id. ``issue`` is the one
    that will build it; ``open`` says which part is missing where some of it is there."""

    about: str
    tests: tuple[str, ...] = ()
    issue: int | None = None
    open: str = ""


def done(about: str, *tests: str) -> Requirement:
    """It is built, and tests hold it."""
    return Requirement(about, tests)


def planned(issue: int, about: str, *tests: str, open: str = "") -> Requirement:
    """An open issue builds it, or its missing part."""
    return Requirement(about, tests, issue, open)
