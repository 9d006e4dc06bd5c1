"""``python -m benchmarks.discovery``: tokens that a turn sends with 10, 100 and 1000 tools, all of them shown or found.

A real platform and a model that is scripted: it wants one tool. Where it is shown that tool it calls it; else it looks
for it by words, loads it and calls it. What each model call is sent is counted as the platform counts tokens (four
bytes each), definitions first, as providers have them. *Cached* is what begins like the call before, which a provider's
cache need not read again. Sizes do not depend on the machine. The tools are made up, each about as long as those that
come with Trunkline. Then the request that a fresh home sends for "hello", as an emulated vendor's endpoint receives it.
"""

import argparse
import json
import random
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
from trunkline.contracts.conversations.messages import ToolCall
from trunkline.contracts.models.adapter import Call, ModelAdapter, ModelRequest
from trunkline.contracts.tools.messages import ToolSpec
from trunkline.testing.platform import platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.workers.monitor.context_budget import estimate_tokens
from trunkline.workers.tools.search_index import ToolSearchIndex

VERBS = (
    "create", "update", "delete", "list", "search", "archive", "export", "import", "assign", "approve",
    "cancel", "schedule", "merge", "send", "fetch", "rename", "lock", "share", "restore", "validate",
)  # fmt: skip
NOUNS = (
    "invoice", "customer", "ticket", "contract", "shipment", "branch", "deployment", "calendar", "mailbox", "playlist",
    "recipe", "sensor", "thermostat", "reservation", "flight", "account", "payment", "subscription", "document",
    "spreadsheet", "presentation", "photo", "video", "podcast", "bookmark", "project", "milestone", "release",
    "pipeline", "container", "cluster", "database", "table", "index", "backup", "certificate", "domain", "firewall",
    "printer", "warehouse", "supplier", "order", "refund", "coupon", "campaign", "survey", "lead", "meeting", "note",
    "alarm",
)  # fmt: skip
ALWAYS = 10
"""Tools that are shown in any case; those that come with Trunkline for every day are as many."""


class GeneratedTool(trunkline.Tool):
    """One of many tools."""

    def __init__(self, verb: str, thing: str, *, always: bool) -> None:
        said = {
            "id": f"The {thing} that is meant, by its number or by its name.",
            "reason": f"Why the {thing} is to be treated so; whoever looks at its history sees it.",
            "notify": "Whether those who are concerned are told by mail.",
        }
        kinds = {"id": "string", "reason": "string", "notify": "boolean"}
        self.spec = ToolSpec(
            name=f"{verb}_{thing}",
            description=f"{verb.capitalize()} a {thing} of the office. It must be there, and nobody else may be at "
            f"work on it. What was done to the {thing} stands in its history and can be looked up there.",
            parameters={
                "type": "object",
                "properties": {name: {"type": kinds[name], "description": said[name]} for name in said},
                "required": ["id"],
            },
            effect="read",
            category="always-send" if always else "discoverable",
        )

    async def __call__(self, context: trunkline.ToolContext, arguments: dict[str, Any]) -> str:
        """Do nothing."""
        return "done"


def generate_tools(count: int) -> list[trunkline.Tool]:
    """So many tools; a few of them are for every day."""
    pairs = [(verb, thing) for thing in NOUNS for verb in VERBS]
    random.Random(7).shuffle(pairs)
    return [
        GeneratedTool(*pair, always=number < min(ALWAYS, count // 2))
        for number, pair in enumerate(pairs[:count])
    ]


@dataclass
class ManyToolsPlugin:
    """The tools, and a model that wants one of them."""

    tools: Sequence[trunkline.Tool]
    requests: list[ModelRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.model = ScriptedModel(self._answer)

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ModelAdapter]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[trunkline.Tool]:
        return self.tools

    def _answer(self, request: ModelRequest) -> Any:
        wanted = next(one.content for one in reversed(request.messages) if one.role == "user")
        called = [
            call.name for one in request.messages if one.turn == request.turn for call in one.tool_calls
        ]
        if wanted in called:
            return "That is done."
        if wanted in {tool.name for tool in request.tools}:
            return _call(wanted, id="4711")
        if "discover_tools" in called:
            return _call("load_tools", names=[wanted])
        return _call("discover_tools", query=wanted.replace("_", " a "))


def _call(name: str, **arguments: Any) -> list[Call]:
    return [Call(ToolCall(id=f"call_{name}", name=name, arguments=arguments))]


async def measure(count: int, way: str, turns: int) -> list[dict[str, int]]:
    """What each of so many turns of one conversation sent: each wants another tool, the last one the first again."""
    office = ManyToolsPlugin(generate_tools(count))
    wanted = [tool.spec.name for tool in office.tools[-turns + 1 :]]
    config = {"runtime.provider_adapter": office.model.name, "plugins.disabled": _other_plugins()}
    figures, before = [], ""
    with TemporaryDirectory(prefix="trunkline-bench-") as folder:
        home = Path(folder)
        async with platform(home, plugins=[office], config=config) as running:
            (home / "memory" / "preferences.toml").write_text(f'discovery = "{way}"\n')
            conversation = None
            for name in [*wanted, wanted[0]]:
                office.model.requests.clear()
                answer = await running.say(name, conversation=conversation)
                assert answer.text.endswith("That is done."), answer
                conversation = answer.accepted.conversation
                sent = [_request_text(request) for request in office.model.requests]
                figures.append(_count_tokens(sent, before))
                before = sent[-1]
    return figures


async def default_request() -> dict[str, int]:
    """What a fresh home sends for "hello": tools, and tokens of the whole body and of its parts."""
    with ScriptedProvider() as provider:
        shipped = MonitorSettings().discovery_threshold  # platforms of tests differ
        async with platform(config={**provider.settings, "monitor.discovery_threshold": shipped}) as running:
            await running.say("hello")
        body = provider.answer_requests[-1].body
    parts = {"tokens": body, "tools' tokens": body["tools"], "messages' tokens": body["messages"]}
    sizes = {name: estimate_tokens(json.dumps(part, ensure_ascii=False)) for name, part in parts.items()}
    return {"tools": len(body["tools"]), **sizes}


def _other_plugins() -> tuple[str, ...]:
    """All plugins but the one that stores memory: their tools would be counted."""
    from importlib.metadata import distributions

    names = {
        found.metadata["Name"] for found in distributions() if found.entry_points.select(group="trunkline")
    }
    return tuple(sorted(names - {"trunkline", "trunkline-git-store"}))


def _request_text(request: ModelRequest) -> str:
    """What is sent, definitions first."""
    messages = [
        {"role": one.role, "content": one.content, "calls": one.tool_calls} for one in request.messages
    ]
    return (msgspec.json.encode(request.tools) + msgspec.json.encode(messages)).decode()


def _count_tokens(sent: Sequence[str], before: str) -> dict[str, int]:
    cached = [_common_prefix(one, other) for one, other in zip([before, *sent], sent, strict=False)]
    return {
        "calls": len(sent),
        "tokens": sum(map(estimate_tokens, sent)),
        "cached": sum(cached) // 4,
        "largest": max(map(estimate_tokens, sent)),
    }


def _common_prefix(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def ranks(count: int, rounds: int) -> list[int]:
    """The place at which a tool is found by words that say what it does, of so many tools; 0 when it is not found."""
    dice, specs = random.Random(11), [tool.spec for tool in generate_tools(count)]
    ranking, found = ToolSearchIndex(specs), []
    for _ in range(rounds):
        wanted = dice.choice(specs)
        verb, thing = wanted.name.split("_")
        best = [spec.name for spec in ranking.search(f"I have to {verb} some {thing}s")]
        found.append(best.index(wanted.name) + 1 if wanted.name in best else 0)
    return found


def _rows(figures: dict[str, list[dict[str, int]]]) -> Iterator[list[object]]:
    for name, turns in figures.items():
        for label, turn in (
            ("first", turns[0]),
            ("later, another tool", turns[1]),
            ("later, the same", turns[-1]),
        ):
            yield [
                name,
                label,
                turn["calls"],
                turn["largest"],
                turn["tokens"],
                turn["cached"],
                turn["tokens"] - turn["cached"],
            ]


async def run(counts: Sequence[int], turns: int) -> dict[str, list[dict[str, int]]]:
    """All figures, by number of tools and way."""
    figures = {}
    for count in counts:
        for way, label in (("off", "all sent"), ("on", "discovery")):
            progress(f"{count} tools, {label}")
            figures[f"{count}, {label}"] = await measure(count, way, turns)
    progress("")
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.discovery", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "--tools", type=int, nargs="+", default=[10, 100, 1000], help="how many (10 100 1000)"
    )
    parser.add_argument("--turns", type=int, default=4, help="turns of a conversation (4)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, in tokens")
    given = parser.parse_args()
    figures = anyio.run(run, given.tools, max(3, given.turns), backend_options={"use_uvloop": True})
    places = ranks(max(given.tools), 200)
    default = anyio.run(default_request)
    if given.json:
        print(json.dumps({"figures": figures, "places": places, "default": default}, indent=2))
        return
    head = ("tools", "turn", "model calls", "largest call", "tokens sent", "of these cached", "not cached")
    print(table(head, _rows(figures)))
    shown = sum(1 for place in places if 0 < place <= 20)
    first = sum(1 for place in places if place == 1)
    print(
        f"\nOf {max(given.tools)} tools, the one that is meant is found first in {first} of {len(places)} searches,"
    )
    print(f"and among the 20 that are shown in {shown}.")
    print("\nThe default request of hello: " + ", ".join(f"{name} {size}" for name, size in default.items()))


if __name__ == "__main__":
    main()
