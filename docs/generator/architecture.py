"""The page of the architecture: packages from their docstrings, layers from the import contract of pyproject.toml."""

import ast
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from generator.markdown import table

ROOT = Path(__file__).parents[2]
CORE = Path("core/trunkline")
BUS = Path("bus/trunkline_bus")
BUNDLED = {"Plugins": "plugins", "Adapters": "adapters", "Channels": "channels"}
"""The headings of the bundled distributions, with their folders."""

LAYER_ROLES = {
    "api": "what plugins import",
    "cli": "commands",
    "testing": "testing kit",
    "workers": "the five workers",
    "documents": "document readers",
    "runtime": "life cycle, supervisor",
    "home": "home folder",
    "plugins": "plugin loading",
    "telemetry": "traces, metrics, logs",
    "config": "settings",
    "acl": "NATS accounts",
    "policy": "authorization",
    "contracts": "messages, subjects, protocols, clients",
    "_util": "helpers",
    "errors": "exceptions",
}
"""The role of each entry of the core, in the few words that the diagram of the layers has room for."""

# ruff: noqa: E501  a row of a Markdown table is one line

INTRODUCTION = """
# Architecture

> The bus imports nothing of Trunkline. The core imports the bus. A plugin imports the core. No plugin imports another.

[Where do I change ...](where-to-change.md) names the files of the ten most common changes. The
[glossary](../reference/glossary.md) defines the terms.

## Five workers and a bus

| worker | owns | never |
|---|---|---|
| gateway | authentication; conversations; HTTP | interprets or changes a message, runs a tool, picks a model |
| monitor | the agents: builds the context, runs the loop of model and tools, keeps the turn | touches files, runs a tool itself, authenticates |
| tools | the catalogue, the checks of calls, the calls, the effect ledger | talks to a model, keeps conversation state |
| memory | the files that an agent remembers, their history and index, as the only writer | summarises or interprets |
| channels | one channel each: messages in, answers out | reaches the agent except through the gateway |

Workers communicate only over NATS, on the [subjects](../reference/subjects.md) of one table. A single process uses the
bus in the same way: `trunkline up` starts the real server as a child process and runs all five workers beside it. So the
tests of one machine cover what runs on several ([decision 1](../adr/0001-nats-is-the-only-bus.md)).

All workers share one life cycle: *open* (the worker answers requests once `open` returns), *serve*, *drain* (it takes no
new work and finishes or hands back what it has), *close*. After a crash the supervisor closes and restarts that worker;
the others continue.
"""

MESSAGE_PATH = (
    ("Channel", "Gateway", "message", "core/trunkline/contracts/gateway/client.py",
     "A channel sends a message with the gateway's client."),
    ("Gateway", "INBOX", "append", "core/trunkline/workers/gateway/message_service.py",
     "The gateway checks the message and appends it to the inbox."),
    ("INBOX", "Gateway", "stored", "core/trunkline/contracts/turns/subjects.py",
     "The server has the message on disk."),
    ("Gateway", "Channel", "accepted", "core/trunkline/workers/gateway/bus_handlers.py",
     "Only then does the gateway reply *accepted*."),
    ("INBOX", "Monitor", "item of a pinned partition", "core/trunkline/workers/monitor/inbox.py",
     "The server delivers the item to the one monitor that holds its partition."),
    ("Monitor", "Memory", "load conversation and files", "core/trunkline/workers/monitor/context_builder.py",
     "The monitor builds the turn's context."),
    ("Monitor", "JOURNAL", "compare-and-set", "core/trunkline/workers/monitor/journal.py",
     "The monitor records each step before it acts."),
    ("Monitor", "Model", "request", "core/trunkline/workers/monitor/model_call.py",
     "The monitor calls the model through an adapter."),
    ("Monitor", "Channel", "text, over FEED", "core/trunkline/workers/monitor/feed_writer.py",
     "The text appears in the feed while it arrives; `core/trunkline/contracts/turns/feed_reader.py` reads it."),
    ("Monitor", "Tools", "call", "core/trunkline/workers/monitor/tool_caller.py",
     "The monitor sends a tool call."),
    ("Tools", "EFFECT", "started, finished", "core/trunkline/workers/tools/ledger.py",
     "The tools worker checks the call (`dispatch.py`), records it in the effect ledger and runs it (`call_executor.py`)."),
    ("Tools", "Monitor", "outcome", "core/trunkline/workers/tools/call_registry.py",
     "The tools worker replies with the outcome. The monitor calls the model again until the answer is complete."),
    ("Monitor", "Memory", "append conversation", "core/trunkline/workers/monitor/runner.py",
     "The monitor stores the turn's messages in memory."),
    ("Monitor", "INBOX", "acknowledge", "core/trunkline/workers/monitor/claimed_item.py",
     "After `TurnFinished` is in the journal, the monitor acknowledges the inbox item."),
)  # fmt: skip
"""The steps of a message: sender, receiver, arrow's text, the file that does it, and a sentence."""

LAYER_NOTES = """
A module imports only from its own and lower layers. Only `trunkline_bus` imports the NATS client. Only
`core/trunkline/telemetry/setup.py` and `core/trunkline/telemetry/prometheus.py` import the OpenTelemetry SDK. The five
workers do not import each other. `pyproject.toml` and `tests/architecture/test_layers.py` define these rules, and the
tests enforce them.

The public API for plugins is `trunkline`, with the names that most plugins need, and the modules of `trunkline.api`, one
for each kind of extension. Plugins import nothing else of Trunkline, those of this repository included: a test checks that
(`tests/architecture/test_layers.py`). [The reference](../reference/api.md) lists every name.
"""

LOOP = """
## The agent loop can be swapped

The monitor owns the turn. The loop inside is simple: call the model, run the tools that it asks for, call it again. The
loop does not limit the number of steps; a plugin can, with
[trunkline_stop_turn](../reference/hooks.md#trunkline_stop_turn). If `monitor.engine` is set, the bare loop is also served
at `POST /engine/chat` on loopback. The `engine` adapter lets the loop of another program answer instead.

## The home folder

```text
~/.trunkline/
  trunkline.toml     settings
  memory/            the memory root, a git repository of plain files: back it up
  workspaces/BLOCK/  the folder of a block's file tools
  bus/               the embedded server's store: messages, journals, traces
  cache/             indexes; deleting them loses nothing
  run/               how to reach the running platform
  token              the access token, readable by the owner only
  logs/
```
"""


def page() -> str:
    """The whole page."""
    return "\n\n".join(
        [
            INTRODUCTION.strip(),
            _path(),
            f"## Layers\n\n{_layers()}\n\n{LAYER_NOTES.strip()}",
            "## Packages\n\nEach line is the first sentence of the package's or module's docstring.",
            f"### Bus\n\n{_packages(BUS)}",
            f"### Core\n\n{_packages(CORE)}",
            *(f"### {title}\n\n{_bundled(folder)}" for title, folder in BUNDLED.items()),
            "[Decision 7](../adr/0007-two-distributions-in-one-tree.md) explains why two import packages are in one\n"
            "distribution, and why each plugin is a distribution of its own.",
            LOOP.strip(),
        ]
    )


def entries(base: Path) -> list[Path]:
    """The packages below ``base`` that hold code, and the modules directly in it."""
    packages = [
        file.parent.relative_to(ROOT)
        for file in sorted((ROOT / base).rglob("__init__.py"))
        if "templates" not in file.parts
    ]
    modules = [
        file.relative_to(ROOT) for file in sorted((ROOT / base).glob("*.py")) if file.stem != "__init__"
    ]
    return [*packages[1:], *modules]


def layers() -> list[list[str]]:
    """The layers of the core from high to low, each with the entries that stand side by side in it."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contract = next(one for one in tools["importlinter"]["contracts"] if one["id"] == "layers")
    return [re.split(r"\s*[:|]\s*", layer) for layer in contract["layers"]]


def _path() -> str:
    lines = ["```mermaid", "sequenceDiagram"]
    lines += [
        f"    participant {name}"
        for name in dict.fromkeys(name for step in MESSAGE_PATH for name in step[:2])
    ]
    lines += [f"    {sender}->>{receiver}: {text}" for sender, receiver, text, *_ in MESSAGE_PATH]
    steps = [f"{number}. {sentence} `{file}`" for number, (*_, file, sentence) in enumerate(MESSAGE_PATH, 1)]
    note = "Capitals are JetStream streams. [A turn](turn.md) describes what a crash at each point leaves behind."
    return "\n".join(["## The path of a message", "", *lines, "```", "", note, "", *steps])


def _layers() -> str:
    lines = ["```mermaid", "flowchart TD", '    bundled["plugins/* · adapters/* · channels/*"]']
    levels = [" · ".join(f"{name}: {LAYER_ROLES[name]}" for name in names) for names in layers()]
    lines += [f'    layer{number}["{text}"]' for number, text in enumerate(levels, 1)]
    lines.append('    bus["trunkline_bus: typed messages over NATS"]')
    order = ["bundled", *(f"layer{number}" for number in range(1, len(levels) + 1)), "bus"]
    lines.append(f"    {' --> '.join(order)}")
    return "\n".join([*lines, "```"])


def _packages(base: Path) -> str:
    return table(("path", "is"), [_row(entry) for entry in entries(base)])


def _bundled(folder: str) -> str:
    packages = sorted((ROOT / folder).glob("*/src/*/__init__.py"))
    return table(
        ("path", "is"), [(f"`{file.parents[2].relative_to(ROOT)}`", summary(file)) for file in packages]
    )


def _row(entry: Path) -> Sequence[str]:
    file = ROOT / entry
    return f"`{entry}`", summary(file if file.suffix else file / "__init__.py")


def summary(file: Path) -> str:
    """The first paragraph of a module's docstring, as one line of Markdown."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    first = " ".join(text.split("\n\n")[0].split()).replace("``", "`")
    return re.sub(r"\s*\((?:RLM-F\d+|C\d+|conflict C\d+)\)", "", first)
