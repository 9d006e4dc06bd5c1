"""The interface of a screen, as the session uses it. Types only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from trunkline_terminal.theme import Theme

ApprovalAnswer = Literal["no", "once", "conversation", "always"]
"""A person's answer to an approval: no, or yes with a scope."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Prompt(Generic[T]):
    """A question on the input line. ``how`` explains the answer in a line, ``keys`` in a word or two. ``read`` parses a
    line into an answer and returns None for a line that is not one. With ``diff`` the question quotes a unified
    diff."""

    how: str
    keys: str
    read: Callable[[str], T | None]
    hint: str = ""
    diff: bool = False


Tone = Literal["plain", "dim", "warning", "error"]


@dataclass(frozen=True, slots=True)
class StatusLine:
    """The content of the status line. ``context`` is the part of the model's window that the conversation uses,
    ``mode`` what the agent may do without asking, ``turns`` the number of turns that run or wait."""

    block: str = ""
    title: str = ""
    mode: str = ""
    model: str = ""
    tokens: str = ""
    context: str = ""
    cost: str = ""
    turns: int = 0
    connected: bool = True


class Screen(Protocol):
    """A place where a conversation is shown. Callers hand in raw text; the screen neutralises it before it prints.

    No method blocks or raises. Text given to ``answer`` and ``reasoning`` belongs to the running step until
    ``settle`` (it is final) or ``reset`` (it is void).
    """

    def note(self, text: str, tone: Tone = "dim") -> None:
        """Say something about the conversation, on lines of its own."""
        ...

    def answer(self, text: str) -> None:
        """More of the answer."""
        ...

    def reasoning(self, text: str) -> None:
        """More of the model's reasoning."""
        ...

    def settle(self) -> None:
        """Mark the answer text since the last ``settle`` as final."""
        ...

    def reset(self) -> None:
        """Remove the answer text since the last ``settle``; it arrives again."""
        ...

    def tool_started(self, call: str, label: str) -> None:
        """A tool runs. ``call`` is its id."""
        ...

    def tool_progressed(self, call: str, line: str) -> None:
        """The tool runs on. ``line`` is the last line of its output, or what it says about its progress."""
        ...

    def tool_ended(self, call: str, label: str, *, failed: bool, seconds: float, output: str) -> None:
        """The tool ended; the first lines of ``output`` are shown."""
        ...

    def message(self, text: str) -> None:
        """A message of the person's that was said earlier or elsewhere."""
        ...

    def status(self, status: StatusLine) -> None:
        """Show this status from now on."""
        ...

    async def ask(self, question: str, prompt: Prompt[T]) -> T | None:
        """The person's answer, or None where nobody can be asked. Cancelled when others have decided."""
        ...

    @property
    def can_choose(self) -> bool:
        """Report whether somebody can be asked to pick."""
        ...

    async def choose(self, title: str, choices: Sequence[str]) -> int | None:
        """The position of the line that the person picks, or None if they pick none or nobody can be asked."""
        ...

    def queue(self, messages: Sequence[str]) -> None:
        """Show these messages as those that wait for the running turn, from now on."""
        ...

    def pane(self, lines: Sequence[str]) -> None:
        """Show these lines above the input from now on, the first one as their title. No lines close the pane."""
        ...

    def edit(self, text: str) -> None:
        """Put a text before what the person is typing, so that they can change it."""
        ...

    def insert(self, text: str) -> None:
        """Insert a text where the person is typing."""
        ...

    def clear(self) -> None:
        """Empty the screen."""
        ...

    def theme(self, theme: Theme) -> bool:
        """Use this theme from now on. Returns whether later sessions will use it too."""
        ...
