"""Every hook has an example in its docstring, and every example is a plugin that works."""

import inspect
import re
from textwrap import dedent

import pytest

import trunkline
from trunkline.api.gateway import SendMessage
from trunkline.api.memory import SearchMemory
from trunkline.api.turn import ReasoningDelta, TextReset, TurnRequested
from trunkline.contracts import hooks
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.turns.context import TurnInfo
from trunkline.plugins.hook_rules import HOOK_RULES

HOOKS = {name: hook for name, hook in vars(hooks).items() if name.startswith("trunkline_")}

DESIGN = {
    "config",
    "messages",
    "lifespan",
    "bus_middleware",
    "health_checks",
    "commands",
    "context_sources",
    "turn_middleware",
    "turn_routers",
    "stop_turn",
    "models",
    "select_model",
    "compactors",
    "model_middleware",
    "authenticators",
    "admission_rules",
    "route",
    "http_routes",
    "static_sites",
    "locales",
    "passkey_verifiers",
    "push_senders",
    "tools",
    "tool_middleware",
    "tool_sources",
    "sandboxes",
    "readers",
    "channels",
    "render",
    "sentences",
    "memory_stores",
    "embedders",
    "importers",
    "memory_rules",
    "purgers",
    "chunk_types",
    "link_types",
    "rank",
}

MESSAGE = trunkline.Message(id="msg_1", role="user", content="The tomato is red.")
REQUEST = TurnRequested(
    turn="t", block="main", conversation="c", message=MESSAGE, actor="owner", channel="terminal"
)
TURN = TurnInfo(request=REQUEST, block=BlockConfig(), memory=None, step=100)  # type: ignore[arg-type]
HITS = [
    trunkline.MemoryHit(path=path, line=1, content="", context="", score=1.0) for path in ("b.md", "a.md")
]

DECISIONS = {
    "trunkline_stop_turn": ({"turn": TURN}, "a hundred steps are enough"),
    "trunkline_select_model": ({"turn": TURN, "preference": "x"}, "parrot/small"),
    "trunkline_route": ({"message": SendMessage(content="a tomato")}, "garden"),
    "trunkline_render": (
        {"event": ReasoningDelta(step=0, offset=0, text="hm"), "channel": "terminal"},
        "(thinking)",
    ),
    "trunkline_rank": ({"query": SearchMemory(query="x"), "hits": HITS}, HITS[::-1]),
}


EXAMPLE_OBJECTS = {"trunkline_model_middleware": 2}
"""The number of objects of the examples that yield more than one."""


def example(hook):
    (code,) = re.findall(r"```python\n(.*?)```", inspect.getdoc(hook), re.DOTALL)
    return dedent(code)


def test_every_hook_of_the_design_is_there():
    """The hooks are those of the design's table, and each is either declaring or deciding."""
    assert {name.removeprefix("trunkline_") for name in HOOKS} == DESIGN
    assert set(HOOK_RULES) | set(DECISIONS) == set(HOOKS)
    firsts = {name for name, hook in HOOKS.items() if hook.trunkline_spec["firstresult"]}
    assert firsts == set(DECISIONS)


@pytest.mark.parametrize("name", HOOK_RULES)
def test_a_declaring_hooks_example_works(load, sources, name):
    """The example, saved as a file in ``tool_sources``, is loaded and its objects are used."""
    (sources / "example.py").write_text(example(HOOKS[name]))
    plugins = load()
    given = {"worker": "monitor"} if name == "trunkline_lifespan" else {}
    found = [owned.item for owned in plugins.collect(name, **given) if owned.owner == "file:example"]
    assert len(found) == EXAMPLE_OBJECTS.get(name, 1)
    assert plugins.report.troubles == []


@pytest.mark.parametrize("name", DECISIONS)
def test_a_deciding_hooks_example_works(load, sources, name):
    """The example's answer is the one that counts."""
    (sources / "example.py").write_text(example(HOOKS[name]))
    given, answer = DECISIONS[name]
    assert load().first(name, **given) == answer


def test_the_typed_interface_calls_every_hook(load):
    """Each hook has a method of its own on Plugins."""
    plugins = load()
    for ask in (
        plugins.config_sections, plugins.message_types, plugins.bus_middleware, plugins.health_checks,
        plugins.commands, plugins.context_sources, plugins.turn_middleware, plugins.models,
        plugins.model_middleware, plugins.authenticators, plugins.admission_rules, plugins.http_routes, plugins.locales,
        plugins.tools, plugins.tool_middleware, plugins.tool_sources, plugins.sandboxes, plugins.readers,
        plugins.channels,
        plugins.memory_stores, plugins.memory_rules, plugins.chunk_types, plugins.link_types, plugins.importers,
        plugins.purgers,
    ):  # fmt: skip
        assert isinstance(ask(), tuple)
    assert isinstance(plugins.lifespans("tools"), tuple)
    assert plugins.push_sender() is None or callable(plugins.push_sender().send)
    assert plugins.passkey_verifier() is None or plugins.passkey_verifier().algorithms
    assert plugins.static_site() is None or plugins.static_site().item.folder.is_dir()
    assert plugins.stop_turn(TURN) is None
    assert plugins.select_model(TURN, "x") is None
    assert plugins.render(TextReset(step=0), "terminal") is None
    assert plugins.rank(SearchMemory(query="x"), HITS) == HITS
