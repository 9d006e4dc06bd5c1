"""A program for the tests: the terminal channel on a scripted gateway, so that a test can use a real terminal.

Run as ``python terminal_program.py HOME [resume] [plain]``. The agent's action depends on the message; ``ANSWERS`` is
the list.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import anyio

from trunkline.contracts.approvals.preview import diff_preview
from trunkline.contracts.channels.foreground_channel import TerminalSession
from trunkline.contracts.conversations.messages import Message, ToolCall, Usage
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.turns.feed_messages import (
    ApprovalRequested,
    ApprovalSettled,
    TextDelta,
    TextReset,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.testing.scripted_gateway import ScriptedGateway, Step, echo
from trunkline_bus import new_id
from trunkline_terminal.channel import TerminalChannel
from trunkline_terminal.settings import TerminalSettings

DONE = TurnEnded(reason="stop", usage=Usage(input_tokens=123, output_tokens=45))


def pieces(text: str, step: int = 0, size: int = 7) -> Iterator[Step]:
    """A text as a model sends it."""
    for offset in range(0, len(text), size):
        yield TextDelta(step=step, offset=offset, text=text[offset : offset + size])


def markdown(message: SendMessage) -> Iterator[Step]:
    yield from pieces(
        "# Heading\n\nSome **bold** text.\n\n```python\ndef f():\n    return 1\n```\n\n- one\n- two\n\nThe end."
    )
    yield DONE


def long_answer(message: SendMessage) -> Iterator[Step]:
    yield from pieces("\n\n".join(f"Paragraph {number}." for number in range(1, 81)), size=40)
    yield DONE


def tools(message: SendMessage) -> Iterator[Step]:
    good = ToolCall(id="c1", name="read_file", arguments={"path": "notes/a.md"})
    bad = ToolCall(id="c2", name="write_file", arguments={"path": "b.md", "content": "x" * 200})
    yield from pieces("I look.")
    yield ToolStarted(step=0, call=good)
    yield ToolStarted(step=0, call=bad)
    yield ToolEnded(step=0, call_id="c1", name="read_file", output="text")
    yield ToolEnded(
        step=0, call_id="c2", name="write_file", output="permission\x1b]0;evil\x07 denied", error=True
    )
    yield from pieces("Done.", step=1)
    yield DONE


def reset(message: SendMessage) -> Iterator[Step]:
    yield from pieces("A false start.\n\nand more")
    yield TextReset(step=0)
    yield from pieces("The true answer.")
    yield DONE


def forever(message: SendMessage) -> Iterator[Step]:
    yield from pieces("I begin and do not end")
    yield anyio.Event()


def approval(message: SendMessage) -> Iterator[Step]:
    call = ToolCall(id="c1", name="send_mail", arguments={"to": "a@example.org"})
    decided = GATEWAY[0].next_decision
    yield ApprovalRequested(call=call, call_hash="h", question="May I send this mail?")
    yield decided
    allow = GATEWAY[0].decided[-1][2]
    yield ApprovalSettled(call_id="c1", allow=allow, by="terminal")
    yield from pieces("Sent." if allow else "Then not.", step=1)
    yield DONE


def changes(message: SendMessage) -> Iterator[Step]:
    before = "\n".join(f"line {number}" for number in range(1, 8))
    after = before.replace("line 4", "the fourth line")
    call = ToolCall(id="c1", name="write_file", arguments={"path": "a.md"})
    decided = GATEWAY[0].next_decision
    detail = diff_preview("a.md", before, after)
    yield ApprovalRequested(call=call, call_hash="h", question="May I write this file?", detail=detail)
    yield decided
    yield ApprovalSettled(call_id="c1", allow=GATEWAY[0].decided[-1][2], by="terminal")
    yield DONE


def answered(message: SendMessage) -> Iterable[Step]:
    """Repeats the message, with the files that it brought and the parameters that it set."""
    if not (message.documents or message.temperature is not None):
        return echo(message)
    files = ", ".join(f"{file.name} ({len(file.data)} bytes)" for file in message.documents)
    return (*pieces(f"You said: {message.content}. I got: {files or message.temperature}"), DONE)


def failing(message: SendMessage) -> Iterator[Step]:
    yield from pieces("Half of an ans")
    yield TurnEnded(
        reason="error", code=ErrorCode.PROVIDER_ERROR, sentence=FIXED_SENTENCES[ErrorCode.PROVIDER_ERROR]
    )


def hostile(message: SendMessage) -> Iterator[Step]:
    yield from pieces("\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m \x9b31m and \u202eback")
    yield DONE


def outage(message: SendMessage) -> Iterator[Step]:
    yield from pieces("Before the break. ")
    gateway = GATEWAY[0]
    gateway.away_for(6.0)
    yield gateway.back
    yield TextDelta(step=0, offset=18, text="After the break.")
    yield DONE


ANSWERS: dict[str, Callable[[SendMessage], Iterator[Step]]] = {
    function.__name__: function
    for function in (
        markdown,
        long_answer,
        tools,
        reset,
        forever,
        approval,
        changes,
        failing,
        hostile,
        outage,
    )
}


class Gateway(ScriptedGateway):
    """A scripted gateway that disconnects."""

    def __init__(self) -> None:
        super().__init__(
            lambda message: ANSWERS.get(message.content, answered)(message), blocks=("main", "work")
        )
        self.back = anyio.Event()

    def away_for(self, seconds: float) -> None:
        """No gateway answers for a while."""
        self.away, self.back = True, anyio.Event()
        self._tasks.start_soon(self._return, seconds)

    async def _return(self, seconds: float) -> None:
        await anyio.sleep(seconds)
        self.away = False
        self.back.set()


GATEWAY: list[Gateway] = []


async def main(home: str, *words: str) -> int:
    """Sit until the person leaves. With ``resume`` there are conversations to choose from."""
    async with Gateway() as gateway:
        GATEWAY.append(gateway)
        session = TerminalSession(resume="resume" in words, plain="plain" in words)
        for title in ("Beans and peas", "The new roof", "Holidays") if session.resume else ():
            messages = [Message(id=new_id("msg"), role="user", content=f"Let us talk: {title}")]
            gateway.add_conversation("main", messages, title)
        return await TerminalChannel(TerminalSettings(), Path(home)).attend(gateway, session)


if __name__ == "__main__":
    sys.exit(anyio.run(main, *sys.argv[1:]))
