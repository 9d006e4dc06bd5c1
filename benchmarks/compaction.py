"""``python -m benchmarks.compaction``: input tokens of a long conversation, against a loop that sends everything.

One conversation of 200 turns through a real platform, three times: as Trunkline is shipped, without the shortening of
old results, and as a naive loop does it, with compaction switched off too. In every second turn the model reads a file
of about 2 000 tokens. The model is scripted. It counts tokens and caches as a vendor does: four bytes are a token,
tools first, and what a request has in common with the one before it comes from the cache, from 1 024 tokens on and in
blocks of 128. *Billed* are the tokens that are not cached, and a tenth of the cached ones; requests for summaries are
counted too.

In the first three quarters of the conversation the person tells facts, and in the last turns asks for each of them. The
model answers from what the request contains, and searches memory if that does not have the fact. The scripted summary
loses every fourth fact, so that the search is needed. Sizes depend on the machine only where a summary, which is
written in the background, comes a turn later.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import msgspec

import trunkline
from benchmarks.figures import progress, table
from trunkline.config.settings import MonitorSettings
from trunkline.contracts.conversations.messages import Message, ToolCall, Usage
from trunkline.contracts.models.adapter import Call, Finish, ModelAdapter, ModelRequest, Text
from trunkline.testing.platform import platform
from trunkline.testing.scripted_model import ScriptedModel

WINDOW = 32_000
"""The tokens that the model accepts, which is the default of ``monitor.context_window``."""

FACTS = 20
"""Facts that are told."""

LOST = 4
"""The scripted summary loses each fact whose number is a multiple of this."""

CACHED_PRICE = 0.1
"""The price of a cached token, as a share of that of another one."""

LEAST_CACHED, CACHE_BLOCK = 1_024, 128
"""Tokens of the shortest beginning that the vendor caches, and of the blocks in which it does."""

OURS, WHOLE_RESULTS, NAIVE = "as shipped", "whole results", "naive loop"
WAYS: dict[str, dict[str, Any]] = {
    OURS: {},
    WHOLE_RESULTS: {"monitor.old_results": {}},
    NAIVE: {"monitor.old_results": {}, "plugins.disabled": ("trunkline-compaction",)},
}
"""The settings of each way."""

FACT = re.compile(r"The code of door (\d+) is ([0-9a-f]{6})")
QUESTION = re.compile(r"What is the code of door (\d+)\?")
LINE = "The inspection of hall {0} found nothing to repair, and the next one is due in week {1}.\n"


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request as the vendor counted it. ``turn`` is the number of the conversation's turn."""

    turn: int
    purpose: str
    tokens: int
    cached: int

    @property
    def billed(self) -> float:
        """Tokens at the full price."""
        return self.tokens - self.cached + CACHED_PRICE * self.cached


@dataclass
class CountingPlugin:
    """The scripted model: reads files, knows what it is sent, summarises, and counts tokens."""

    turn: int = 0
    sent: list[SentRequest] = field(default_factory=list)
    sources: dict[int, str] = field(default_factory=dict)
    """Where the model had each answer from."""
    _before: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = ScriptedModel(self._reply)

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ModelAdapter]:
        return [self.model]

    def _reply(self, request: ModelRequest) -> list[Any]:
        usage = self._count(request)
        said = self._summary(request) if request.purpose == "summary" else self._answer(request)
        parts = said if isinstance(said, list) else [Text(said)]
        return [*parts, Finish(usage=usage, model="scripted")]

    def _count(self, request: ModelRequest) -> Usage:
        text, before = _request_text(request), self._before.get(request.purpose, "")
        tokens, same = len(text) // 4, _common_prefix(before, text) // 4
        cached = same // CACHE_BLOCK * CACHE_BLOCK if same >= LEAST_CACHED else 0
        self._before[request.purpose] = text
        self.sent.append(SentRequest(self.turn, request.purpose, tokens, cached))
        return Usage(input_tokens=tokens, cached_tokens=cached, output_tokens=50)

    def _summary(self, request: ModelRequest) -> str:
        """All facts of the earlier summary and of the conversation, but those that get lost."""
        facts = dict(FACT.findall("\n".join(message.content for message in request.messages)))
        kept = [f"The code of door {n} is {code}." for n, code in facts.items() if int(n) % LOST]
        return "\n".join(["The person inspects halls and asks for doors.", *kept])

    def _answer(self, request: ModelRequest) -> list[Call] | str:
        own = [message for message in request.messages if message.turn == request.turn]
        asked = next(message.content for message in own if message.role == "user")
        called = [call.name for message in own for call in message.tool_calls]
        if (question := QUESTION.search(asked)) is not None:
            return self._look_up(
                request.messages, int(question[1]), asked, searched="memory_search" in called
            )
        if asked.startswith("Read ") and not called:
            return _call("read_file", path=asked.split()[1])
        return "I noted that, and compared it with what the inspections before it found. " * 4

    def _look_up(
        self, messages: Sequence[Message], door: int, asked: str, *, searched: bool
    ) -> list[Call] | str:
        for message in messages:
            if (code := dict(FACT.findall(message.content)).get(str(door))) is not None:
                self.sources[door] = _source(message)
                return f"The code is {code}."
        return "I do not know." if searched else _call("memory_search", query=asked)


def _call(name: str, **arguments: Any) -> list[Call]:
    return [Call(ToolCall(id=f"call_{name}", name=name, arguments=arguments))]


def _source(message: Message) -> str:
    """Where a message comes from."""
    if message.role == "tool":
        return "search of memory"
    if message.role == "system":
        return "files of memory"
    if message.content.startswith('<context source="summary of'):
        return "summary"
    return "recall" if message.content.startswith("<context") else "history"


def _request_text(request: ModelRequest) -> str:
    """What is sent, definitions first."""
    messages = [
        {"role": one.role, "content": one.content, "calls": one.tool_calls} for one in request.messages
    ]
    return (msgspec.json.encode(request.tools) + msgspec.json.encode(messages)).decode()


def _common_prefix(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def code_of(door: int) -> str:
    """The code of a door, six hexadecimal digits."""
    return f"{door * 7_654_321 % 0xFFFFFF:06x}"


def messages_of(turns: int) -> Iterator[str]:
    """What the person says: facts in the first three quarters, questions for each in the last turns."""
    span = min(turns * 3 // 4, turns - FACTS)
    told = {span * number // FACTS // 2 * 2: number + 1 for number in range(FACTS)}
    for number in range(turns):
        if number >= turns - FACTS:
            yield f"What is the code of door {number - turns + FACTS + 1}?"
        elif (door := told.get(number)) is not None:
            yield f"The code of door {door} is {code_of(door)}. Please keep it in mind, I shall ask for it."
        elif number % 2:
            yield f"Read hall-{number}.txt and tell me whether anything in it needs a decision of mine."
        else:
            yield f"Hall {number} is done. The caretaker was there, and we talked about the plan for next week."


async def measure(turns: int, way: str) -> dict[str, Any]:
    """The requests of one conversation, and whether each fact was answered."""
    plugin = CountingPlugin()
    config = {
        "runtime.provider_adapter": plugin.model.name,
        "monitor.context_window": WINDOW,
        "monitor.discovery_threshold": MonitorSettings().discovery_threshold,  # platforms of tests differ
        **WAYS[way],
    }
    with TemporaryDirectory(prefix="trunkline-bench-") as folder:
        _write_files(Path(folder), turns)
        async with platform(Path(folder), plugins=[plugin], config=config) as running:
            conversation, answered = None, 0
            for plugin.turn, text in enumerate(messages_of(turns)):
                answer = await running.say(text, conversation=conversation)
                conversation = answer.accepted.conversation
                question = QUESTION.search(text)
                answered += question is not None and code_of(int(question[1])) in answer.text
                if plugin.turn % 20 == 0:
                    progress(f"{way}: turn {plugin.turn} of {turns}")
    return _figures(plugin, turns, answered)


def _write_files(home: Path, turns: int) -> None:
    workspace = home / "workspaces" / "main"
    workspace.mkdir(parents=True)
    for number in range(turns):
        (workspace / f"hall-{number}.txt").write_text(
            "".join(LINE.format(hall, number) for hall in range(90))
        )


def _figures(plugin: CountingPlugin, turns: int, answered: int) -> dict[str, Any]:
    sent = plugin.sent
    last = [one for one in sent if one.turn >= turns - FACTS]
    too_long = [one.turn for one in sent if one.purpose == "turn" and one.tokens > WINDOW]
    return {
        "requests": len(sent),
        "summaries": sum(one.purpose == "summary" for one in sent),
        "tokens": sum(one.tokens for one in sent),
        "cached": sum(one.cached for one in sent),
        "billed": round(sum(one.billed for one in sent)),
        "last_tokens": sum(one.tokens for one in last),
        "last_billed": round(sum(one.billed for one in last)),
        "largest": max(one.tokens for one in sent),
        "too_long_from": too_long[0] if too_long else None,
        "facts": FACTS,
        "answered": answered,
        "sources": dict(Counter(plugin.sources.values())),
    }


async def run(turns: int) -> dict[str, dict[str, Any]]:
    """The figures of each way, and how many times fewer tokens are billed as shipped than in the naive loop."""
    figures = {way: await measure(turns, way) for way in WAYS}
    progress("")
    ours, naive = figures[OURS], figures[NAIVE]
    ratios = {
        "whole conversation": naive["billed"] / ours["billed"],
        "last turns": naive["last_billed"] / ours["last_billed"],
        "whole conversation, naive loop without a cache": naive["tokens"] / ours["billed"],
        "last turns, naive loop without a cache": naive["last_tokens"] / ours["last_billed"],
    }
    return {**figures, "ratios": {name: round(ratio, 1) for name, ratio in ratios.items()}}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compaction", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--turns", type=int, default=200, help="turns of the conversation, at least 60 (200)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, in tokens")
    given = parser.parse_args()
    found = anyio.run(run, max(60, given.turns), backend_options={"use_uvloop": True})
    if given.json:
        print(json.dumps(found, indent=2))
        return
    _print(found)


def _print(found: dict[str, dict[str, Any]]) -> None:
    names = (
        "requests", "summaries", "tokens", "cached", "billed", "last_tokens", "last_billed", "largest",
        "too_long_from", "answered",
    )  # fmt: skip
    rows = [[name.replace("_", " "), *(found[way][name] for way in WAYS)] for name in names]
    print(table(("", *WAYS), rows))
    print(f"\nFacts of {FACTS} as shipped, by where the answer came from: {found[OURS]['sources']}")
    for name, ratio in found["ratios"].items():
        print(f"{name}: {ratio} times fewer billed tokens than in the naive loop")


if __name__ == "__main__":
    main()
