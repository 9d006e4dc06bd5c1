"""The items that one client received of one turn, and their continuity: no gap, no repeat, one end. No I/O in here."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from trunkline.contracts.turns.feed_messages import (
    ApprovalRequested,
    ApprovalSettled,
    FeedEvent,
    MessageSteered,
    TextDelta,
    TextReset,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)


@dataclass(slots=True)
class Transcript(ABC):
    """The common part: things that may be seen once only, the end, and when text came.

    ``client``: which sort saw it. ``moments``: the step and the time of each piece of text, on the clock of the run.
    """

    client: str
    problems: list[str] = field(default_factory=list)
    ended: bool = False
    moments: list[tuple[int, float]] = field(default_factory=list)
    _once: set[str] = field(default_factory=set)

    @property
    @abstractmethod
    def text(self) -> str:
        """All that is on the client's screen."""

    def _note(self, what: str) -> None:
        if what in self._once:
            self.problems.append(f"{what} came twice")
        self._once.add(what)

    def _end(self) -> None:
        self._note("the end")
        self.ended = True


@dataclass(slots=True)
class FeedTranscript(Transcript):
    """The transcript of a reader of the feed."""

    steps: dict[int, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The steps in their order."""
        return "".join(self.steps[step] for step in sorted(self.steps))

    def take(self, event: FeedEvent, at: float) -> None:
        """Note an event."""
        if self.ended:
            self.problems.append(f"{event} came after the end")
        match event:
            case TextDelta():
                self.moments.append((event.step, at))
                known = self.steps.get(event.step, "")
                if event.offset != len(known):
                    self.problems.append(
                        f"text at {event.offset} of step {event.step}, which had {len(known)}"
                    )
                self.steps[event.step] = known + event.text
            case TextReset():
                self.moments.append((event.step, at))
                self.steps[event.step] = ""
            case ToolStarted():
                self._note(f"the call {event.call.id}")
            case ToolEnded():
                self._note(f"the result of {event.call_id}")
            case ApprovalRequested():
                self._note(f"the question {event.id}")
            case ApprovalSettled():
                self._note(f"the decision about {event.call_id}")
            case MessageSteered():
                self._note(f"the steered message {event.message.id}")
            case TurnEnded():
                self._end()
            case _:
                pass


@dataclass(slots=True)
class HttpTranscript(Transcript):
    """The transcript of a client of server-sent events. ``position`` is the id of the last event."""

    position: str = ""
    turn: str = ""
    conversation: str = ""
    shown: str = ""
    passing: list[str] = field(default_factory=list)
    """Errors that ended a stream but not the turn: the client came back."""

    @property
    def text(self) -> str:
        """Return the text that the deltas and resets produce."""
        return self.shown

    def take(self, event: str, id: str, data: dict[str, Any]) -> None:
        """Note an event."""
        if self.ended:
            self.problems.append(f"{event} came after the end")
        self.position = id or self.position
        match event:
            case "text-delta":
                self.shown += data["content"]
            case "text-reset":
                self.shown = data["content"]
            case "tool-call" | "tool-result":
                self._note(f"{event} {data['id']}")
            case "approval-request":
                self._note(f"{event} {data['approval']}")
            case "approval-settled":
                self._note(f"{event} {data['id']}")
            case "status" if id:
                self._note(f"{event} {data['name']}")
            case "status":
                pass  # what the turn waits for: no part of the turn, and told again on every connection
            case "done":
                self._end()
            case "error" if id:
                self._end()
            case _:
                self.problems.append(f"{event} {data} without being the turn's")
