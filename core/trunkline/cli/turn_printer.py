"""Prints a turn for ``trunkline say``, as text or as one JSON object. No bus, no gateway."""

import sys
from time import monotonic
from typing import Any

import click
import msgspec

from trunkline._util.local_time import format_local_time
from trunkline._util.text import printable
from trunkline.cli.output import fit_text
from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.gateway.answerer import Answerer
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.tools.messages import DISCOVER_TOOLS, LOAD_TOOLS, StoredResult
from trunkline.contracts.turns.feed_messages import (
    ApprovalRequested,
    FeedEvent,
    StatusShown,
    TextDelta,
    TextReset,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)
from trunkline.workers.channels.approval_text import approval_words

FAILED, UNDECIDED = 1, 3
"""Exit statuses: the turn failed, or it waits for a person's decision."""

DISCOVERY_TOOLS = (DISCOVER_TOOLS, LOAD_TOOLS)
"""Tools with which a model only loads other tools. Their success is not printed."""

HINTS = {
    "provider_error": '"trunkline doctor --online" asks the provider; "trunkline trace last" names the fault.',
    "internal": '"trunkline doctor" may know why; so does the log, as logs/say.log in the home folder.',
    "context_overflow": "Begin a new conversation: leave --conversation out.",
}
"""Hints for the codes of failed turns."""


class TurnPrinter:
    """Prints one turn as text. Without ``stream``, the text of a step is printed when it is final."""

    def __init__(self, *, stream: bool) -> None:
        self._stream = stream
        self._texts: dict[int, str] = {}
        self._printed: dict[int, int] = {}
        self._open_line = False
        self._tools: dict[str, dict[str, Any]] = {}
        self._statuses: dict[str, dict[str, Any]] = {}
        self._ended: TurnEnded | None = None
        self._approval: ApprovalRequested | None = None
        self._began = monotonic()
        self._answerer = Answerer()

    def print_answerer(self, answerer: Answerer) -> None:
        """Print which model answers, if standard error is a terminal. Scripts read it with ``--json``."""
        self._answerer = answerer
        if not sys.stderr.isatty():
            return
        if answerer.problem:
            self._note(f"No model answers here: {answerer.problem}")
        elif answerer.label:
            self._note(f"{answerer.label} answers")

    def handle_event(self, event: FeedEvent) -> bool:
        """Process one event. Return whether it is the last one to wait for."""
        match event:
            case TextDelta():
                self._grow(event)
            case TextReset():
                self._reset(event.step)
            case StatusShown():
                self._statuses[event.name] = event.data
                self._note(event.text)
            case ToolStarted():
                self.flush()
                self._tools[event.call.id] = {"name": event.call.name, "arguments": event.call.arguments}
            case ToolEnded():
                tool = self._tools.setdefault(event.call_id, {"name": event.name})
                tool["error"] = event.error
                if event.error or event.name not in DISCOVERY_TOOLS:
                    self._note(f"[{'failed' if event.error else 'ok'}] {event.name}")
                if isinstance(event.stored, StoredResult):
                    tool["stored"] = event.stored
                    self._note(event.stored.notice)
                for file in event.files or ():
                    self._note(f"The agent gives you {file.notice}")
            case ApprovalRequested():
                self._approval = event
                self._note(f"{approval_words(event.question, event.detail)}\n{_how(event)}")
                return True
            case TurnEnded():
                self._ended = event
                return True
        return False

    def finish(self, accepted: MessageAccepted) -> int:
        """Print the rest. Return the exit status."""
        self.flush()
        if self._ended is not None and self._status():
            self._note(f"Error: {self._ended.sentence or f'The turn was {self._ended.reason}.'}")
            self._note(self._ended.detail)
            if hint := HINTS.get(self._ended.code or ""):
                self._note(f"Hint: {hint}")
        elif self._ended is not None and self._ended.reason in ("max_tokens", "content_filter"):
            self._note(f"The answer was cut ({self._ended.reason}).")
        if (model := self._model()) != self._answerer.label and self._answerer.label:
            self._note(f"{model} answered, in place of {self._answerer.label}.")
        self._note(f"conversation {accepted.conversation}")
        return self._status()

    def _model(self) -> str:
        """Return the model that answered; before one did, the one that would."""
        return (self._ended.answered_by if self._ended is not None else "") or self._answerer.label

    def flush(self) -> None:
        """Print the text that was held back, and end the line."""
        for step, text in self._texts.items():
            self._print(step, text)
        if self._open_line:
            self._write("\n")

    def _grow(self, event: TextDelta) -> None:
        if event.step not in self._texts:
            self.flush()
        known = self._texts.get(event.step, "")
        self._texts[event.step] = known + event.text[max(len(known) - event.offset, 0) :]
        if self._stream:
            self._print(event.step, self._texts[event.step])

    def _reset(self, step: int) -> None:
        self._texts.pop(step, None)
        if self._printed.pop(step, 0):
            self._note("(The answer starts again; ignore the text above.)")

    def _print(self, step: int, text: str) -> None:
        self._write(text[self._printed.get(step, 0) :])
        self._printed[step] = len(text)

    def _write(self, text: str) -> None:
        if text:
            click.echo(printable(text), nl=False)
            self._open_line = not text.endswith("\n")

    def _note(self, text: str) -> None:
        if self._open_line:
            self._write("\n")
        if text:
            click.echo(fit_text(printable(text), err=True), err=True)

    def _status(self) -> int:
        if self._ended is None:
            return UNDECIDED
        good = self._ended.code is None and self._ended.reason not in ("error", "cancelled")
        return 0 if good else FAILED


def _how(event: ApprovalRequested) -> str:
    """Return a sentence with the command that decides the call. ``trunkline say`` itself does not ask."""
    if isinstance(event.id, msgspec.UnsetType):
        return "Decide about this in an interactive channel."
    by = (
        ""
        if isinstance(event.expires_at, msgspec.UnsetType)
        else f" by {format_local_time(event.expires_at)}"
    )
    if isinstance(event.detail, ApprovalDetail) and event.detail.is_question:
        return f"This command cannot ask you. Answer{by}: trunkline approvals answer {event.id} TEXT"
    how = f"trunkline approvals approve {event.id} (or deny {event.id})"
    return f"This command cannot ask you. Decide{by}: {how}"


class JsonTurnPrinter(TurnPrinter):
    """Prints one JSON object when the turn has ended."""

    def __init__(self) -> None:
        super().__init__(stream=False)

    def flush(self) -> None:
        """Do nothing: the object is printed at the end."""

    def _note(self, text: str) -> None:
        return

    def finish(self, accepted: MessageAccepted) -> int:
        """Print the object. Return the exit status."""
        ended = self._ended
        said = {
            "block": accepted.block,
            "conversation": accepted.conversation,
            "turn": accepted.turn,
            "message_id": ended.message_id if ended else None,
            "answer": "\n\n".join(text for text in self._texts.values() if text),
            **({"answered_by": self._model()} if self._model() else {}),
            "reason": ended.reason if ended else "undecided",
            **({"approval": self._approval.id} if self._approval and self._approval.id else {}),
            "code": ended.code if ended else None,
            "sentence": ended.sentence if ended else None,
            **({"detail": ended.detail} if ended and ended.detail else {}),
            "tools": list(self._tools.values()),
            **({"statuses": self._statuses} if self._statuses else {}),
            "input_tokens": ended.usage.input_tokens if ended else 0,
            "output_tokens": ended.usage.output_tokens if ended else 0,
            **({"cached_tokens": ended.usage.cached_tokens} if ended and ended.usage.cached_tokens else {}),
            **({"cost": ended.cost} if ended and ended.cost is not None else {}),
            "seconds": round(monotonic() - self._began, 3),
        }
        click.echo(msgspec.json.encode(said).decode())
        return self._status()
