"""Scripted models: the steps of an answer, and the small language of programs that select them. No I/O.

The person's message is the program. So the same conversation always gets the same answer, in any process and any
number of times. A program has one instruction per line; `` ;; `` replaces a line break where only one line can be
typed. A ``call:`` or ``parallel:`` line ends an answer. After the results the program continues with the next line;
if there is none, the answer quotes the results. A message that is no instruction is answered with ``You said: …``.

=====================================  ===========================================================================
``say:TEXT``                           writes the text, word by word
``slow:N`` or ``slow:N:MS``            writes ``word-1 … word-N``, with MS (50) milliseconds between them
``think:TEXT``                         shows the text as reasoning
``call:NAME {json}``                   calls a tool
``parallel:NAME {json} NAME {json}``   calls several tools in one answer
``badcall:NAME TEXT``                  calls a tool with arguments that are not JSON
``quote``                              quotes the tool results since the message
``roles``                              lists the roles of the messages in the request
``wait:SECONDS``                       is silent for this time, then continues
``stall:N``                            writes N words (3), then nothing until the client disconnects
``hang``                               sends nothing at all, not even headers, until the client disconnects
``cut:N``                              writes N words (3), then closes the connection
``quit:N``                             writes N words (3), then ends the answer without a finish reason
``malformed:N``                        writes N words (3), then sends an event that is not JSON
``garbage``                            answers with a web page
``empty``                              answers with a stream without events
``limit:N``                            writes N words (3), then stops at the limit of tokens
``filter``                             stops because of the content filter
``miscount``                           counts negative numbers of tokens
``status:CODE``                        an HTTP error, e.g. 401, 429 (with ``Retry-After: 7``), 500
``overflow``                           the error of a request that exceeds the context window
``once:INSTRUCTION``                   only the first time that exactly these messages are sent
=====================================  ===========================================================================

An example of a turn that can be killed in the middle: ``call:write_file {"path": "a", "content": "b"} ;; slow:20``.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

DEFAULT_WORDS = 3
MISCOUNTED = -5
DEFAULT_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Say:
    """Text, word by word, with a pause of ``pause`` seconds before each word."""

    text: str
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class Think:
    """Reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call of the model. ``arguments`` that are text are sent unchanged."""

    name: str
    arguments: dict[str, Any] | str

    @property
    def text(self) -> str:
        """The arguments in the form that is sent."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class CallTools:
    """Tool calls in one answer."""

    calls: tuple[ScriptedCall, ...]


@dataclass(frozen=True, slots=True)
class RanTools:
    """A tool that the server ran itself, as an agent loop does and a model does not."""

    request: ScriptedCall
    output: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Silence for ``seconds``; None means until the client disconnects."""

    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Hang:
    """No headers until the client disconnects. Only valid as the first step."""


@dataclass(frozen=True, slots=True)
class CutConnection:
    """The server closes the connection."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """An event whose data is not JSON."""


@dataclass(frozen=True, slots=True)
class Miscount:
    """Negative numbers of tokens in the usage of the answer. Only valid as the first step."""


@dataclass(frozen=True, slots=True)
class WebPage:
    """A web page in place of an answer. Only valid as the first step."""


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes of an answer, sent unchanged, ``size`` bytes at a time (0: all at once)."""

    data: bytes
    size: int = 0


@dataclass(frozen=True, slots=True)
class Refuse:
    """An HTTP error. Only valid as the first step."""

    status: int
    code: str
    message: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """The regular end, with the reason stop, tool_calls, max_tokens or content_filter. A reply without it ends
    without a reason.
    """

    reason: str = "stop"


Step = (
    Say
    | Think
    | CallTools
    | RanTools
    | Wait
    | Hang
    | CutConnection
    | Malformed
    | Miscount
    | WebPage
    | Raw
    | Refuse
    | Stop
)
Reply = tuple[Step, ...]

OVERFLOW = Refuse(
    status=400,
    code="context_length_exceeded",
    message="This model's maximum context length is 8 tokens. Please reduce the length of the messages.",
)


@dataclass(frozen=True, slots=True)
class HeardMessage:
    """A message of the request, in a form that is independent of the protocol."""

    role: str
    text: str = ""
    calls: tuple[str, ...] = ()
    """The names of the tools that an assistant message calls."""


@dataclass(frozen=True, slots=True)
class ScriptedRequest:
    """A request to a scripted model."""

    lines: tuple[HeardMessage, ...]
    again: int = 0
    """The number of earlier requests with exactly these messages."""
    tools: tuple[str, ...] = ()
    """The names of the tools in the request."""
    body: dict[str, Any] = field(default_factory=dict)
    """The body of the request; empty for a model in this process."""
    miscounted: bool = False
    """Whether the numbers of tokens are wrong."""

    @property
    def program(self) -> str:
        """The last message of the person."""
        return next((line.text for line in reversed(self.lines) if line.role == "user"), "")

    @property
    def since(self) -> tuple[HeardMessage, ...]:
        """The messages after the person's last message."""
        after = [line.role for line in reversed(self.lines)]
        return self.lines[len(self.lines) - after.index("user") :] if "user" in after else self.lines

    @property
    def asked(self) -> int:
        """The number of answers with tool calls after the person's last message."""
        return sum(1 for line in self.since if line.calls)

    @property
    def results(self) -> tuple[tuple[str, str], ...]:
        """The tool results after the person's last message, as name and text, in the order of the calls."""
        names = [name for line in self.since for name in line.calls]
        texts = [line.text for line in self.since if line.role == "tool"]
        return tuple(zip(names, texts, strict=False))

    @property
    def words(self) -> int:
        """The number of words in all messages. Scripted models report it as the number of input tokens."""
        return MISCOUNTED if self.miscounted else sum(len(line.text.split()) for line in self.lines)


Script = Callable[[ScriptedRequest], Reply]


def words(count: int) -> str:
    """Return the text of ``slow:COUNT``."""
    return " ".join(f"word-{number}" for number in range(1, count + 1))


def pieces(text: str) -> list[str]:
    """Split the text before each word. The joined pieces are the text."""
    return re.findall(r"\S+\s*|\s+", text)


def quoted(results: Iterable[tuple[str, str]]) -> str:
    """Return the text of an answer that quotes tool results."""
    return "\n".join(f"{name} said: {text}" for name, text in results)


def answer(*steps: Step) -> Reply:
    """Return a reply of these steps that ends regularly."""
    return (*steps, Stop("tool_calls" if any(isinstance(step, CallTools) for step in steps) else "stop"))


def answer_by_message(request: ScriptedRequest) -> Reply:
    """Answer by the program in the last message. The language is described in this module's docstring."""
    segments = _segments(request)
    position = min(request.asked, len(segments) - 1)
    steps: list[Step] = list(segments[position])
    if not steps and request.asked:
        steps = [Say(quoted(request.results) or "No tool has answered.")]
    return _ended(_on_lines(steps))


def answer_in_order(programs: Iterable[str]) -> Script:
    """Return a script that answers the first request by the first program, the second by the second, and so on."""
    waiting: Iterator[str] = iter(programs)

    def script(request: ScriptedRequest) -> Reply:
        program = next(waiting, None)
        if program is None:
            return (Refuse(status=500, code="script_ended", message="The script has no more answers."),)
        return answer_by_message(replace(request, lines=(HeardMessage(role="user", text=program),)))

    return script


def answer_as_agent_loop(script: Script, request: ScriptedRequest) -> Reply:
    """Return the answer of an agent loop: the server runs the script's tool calls, up to the end of the program."""
    steps: list[Step] = []
    while True:
        reply = script(request)
        asks = [step for step in reply if isinstance(step, CallTools)]
        if not asks:
            return (*steps, *reply)
        for step in reply:
            steps += _run(step) if isinstance(step, CallTools) else [] if isinstance(step, Stop) else [step]
        request = replace(request, lines=(*request.lines, *_ran_lines(asks)))


def _run(ask: CallTools) -> list[Step]:
    return [RanTools(request, f"{request.name} ran with {request.text}") for request in ask.calls]


def _ran_lines(asks: list[CallTools]) -> list[HeardMessage]:
    runs = [run for ask in asks for run in _run(ask) if isinstance(run, RanTools)]
    called = HeardMessage(role="assistant", calls=tuple(run.request.name for run in runs))
    return [called, *(HeardMessage(role="tool", text=run.output) for run in runs)]


def _segments(request: ScriptedRequest) -> list[list[Step]]:
    segments: list[list[Step]] = [[]]
    for line in re.split(r"\n|\s*;;\s*", request.program):
        steps = _instruction(line.strip(), request) if line.strip() else ()
        segments[-1] += steps
        if any(isinstance(step, CallTools) for step in steps):
            segments.append([])
    return segments


def _on_lines(steps: list[Step]) -> list[Step]:
    """Put the texts of several instructions on separate lines."""
    said = False
    for number, step in enumerate(steps):
        if isinstance(step, Say):
            steps[number] = replace(step, text=f"\n{step.text}") if said else step
            said = True
    return steps


def _ended(steps: list[Step]) -> Reply:
    final = (Stop, CutConnection, Hang, WebPage, Refuse)
    unfinished = any(isinstance(step, (*final, Raw)) or step == Wait() for step in steps)
    return tuple(steps) if unfinished else answer(*steps)


def _instruction(line: str, request: ScriptedRequest) -> tuple[Step, ...]:
    name, _, rest = line.partition(":")
    if name == "once":
        return () if request.again else _instruction(rest.strip(), request)
    make = _INSTRUCTIONS.get(name)
    if make is None:
        return (Say(f"You said: {line}"),)
    try:
        return make(rest.strip(), request)
    except ValueError as error:
        return (Say(f"{line!r} is not an instruction: {error}."),)


def _wishes(text: str) -> tuple[ScriptedCall, ...]:
    found: list[ScriptedCall] = []
    while text:
        name, _, rest = text.partition(" ")
        arguments, end = json.JSONDecoder().raw_decode(rest.lstrip()) if rest.strip() else ({}, 0)
        found.append(ScriptedCall(name, arguments))
        text = rest.lstrip()[end:].strip()
    return tuple(found)


def _bad_call(text: str) -> tuple[Step, ...]:
    name, _, arguments = text.partition(" ")
    return (CallTools((ScriptedCall(name, arguments),)),)


def _slow(text: str) -> tuple[Step, ...]:
    count, _, pause = text.partition(":")
    return (Say(words(int(count)), pause=float(pause) / 1000 if pause else DEFAULT_PAUSE),)


def _some(text: str) -> Say:
    return Say(words(int(text or DEFAULT_WORDS)))


def _status(text: str) -> tuple[Step, ...]:
    status = int(text)
    headers = (("Retry-After", "7"),) if status == 429 else ()
    return (
        Refuse(
            status=status, code=f"scripted_{status}", message=f"Scripted error {status}.", headers=headers
        ),
    )


_INSTRUCTIONS: dict[str, Callable[[str, ScriptedRequest], tuple[Step, ...]]] = {
    "say": lambda text, heard: (Say(text),),
    "slow": lambda text, heard: _slow(text),
    "think": lambda text, heard: (Think(text),),
    "call": lambda text, heard: (CallTools(_wishes(text)),),
    "parallel": lambda text, heard: (CallTools(_wishes(text)),),
    "badcall": lambda text, heard: _bad_call(text),
    "quote": lambda text, heard: (Say(quoted(heard.results)),),
    "roles": lambda text, heard: (Say(" ".join(line.role for line in heard.lines)),),
    "wait": lambda text, heard: (Wait(float(text)),),
    "stall": lambda text, heard: (_some(text), Wait()),
    "hang": lambda text, heard: (Hang(),),
    "cut": lambda text, heard: (_some(text), CutConnection()),
    "quit": lambda text, heard: (_some(text), Raw(b"")),
    "malformed": lambda text, heard: (_some(text), Malformed()),
    "garbage": lambda text, heard: (WebPage(),),
    "empty": lambda text, heard: (Raw(b""),),
    "limit": lambda text, heard: (_some(text), Stop("max_tokens")),
    "miscount": lambda text, heard: (Miscount(),),
    "filter": lambda text, heard: (Stop("content_filter"),),
    "status": lambda text, heard: _status(text),
    "overflow": lambda text, heard: (OVERFLOW,),
}
