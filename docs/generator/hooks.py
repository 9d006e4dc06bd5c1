"""The page of the hooks: ``trunkline.contracts.hooks`` with its examples."""

import inspect
import re

from generator.markdown import code, prose
from trunkline.contracts import hooks
from trunkline.contracts.hooks import channels, common, gateway, memory, monitor, tools
from trunkline.plugins.report import GUARD_HOOKS

INTRODUCTION = """
# Hooks

A plugin adds to Trunkline by implementing hooks. A hook is a plain function with the hook's name and the decorator
`@trunkline.hookimpl`. It is synchronous and returns objects, and the objects do the work. Declare only the parameters
that you need.

| a hook that | does | if it fails |
|---|---|---|
| **adds** | returns a list of objects | its objects are missing, and `trunkline doctor` says why |
| **guards** | returns objects that may refuse something | everything that it guards is refused |
| **decides** | returns an answer, or `None` for no answer | it is skipped; `trunkline_stop_turn` ends the turn |

The objects of Trunkline's own plugins come first, then those of the others, in the order of the distributions' names.
Among deciding hooks and middleware, those marked `@trunkline.hookimpl(tryfirst=True)` come first and those marked
`trylast=True` last. The parameter `settings` belongs to the plugin: `settings.section(Type)` is the plugin's checked
section of `trunkline.toml`, and `settings.home` is the home folder.

Each example below is a complete plugin, and the tests run it. Save one as a file in a folder of `runtime.tool_sources`,
or make it a package: [Your first plugin](../tutorial/first-plugin.md).
"""

WORKERS = {
    "Every worker": common,
    "Monitor": monitor,
    "Gateway": gateway,
    "Tools": tools,
    "Channels": channels,
    "Memory": memory,
}


_DEFINITION = re.compile(r"\n\n(?=(?:@|class |def |async def ))")


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION.strip(), _contents()]
    for worker, names in _by_worker().items():
        parts.append(f"## {worker}")
        parts += [_hook(name) for name in names]
    return "\n\n".join(parts)


def _by_worker() -> dict[str, list[str]]:
    """The hooks in the order of the source."""
    return {
        worker: [name for name in vars(module) if name.startswith("trunkline_")]
        for worker, module in WORKERS.items()
    }


def _contents() -> str:
    lines = [
        f"* {worker}: " + ", ".join(f"[{name.removeprefix('trunkline_')}](#{name})" for name in names)
        for worker, names in _by_worker().items()
    ]
    return "\n".join(lines)


def _hook(name: str) -> str:
    hook = getattr(hooks, name)
    arguments = ", ".join(inspect.signature(hook).parameters)
    said = _DEFINITION.sub(
        "\n\n\n", prose(hook).replace(" A guard.", "")
    )  # as ruff has it, which forms pages too
    return f"### {name}\n\n{code(f'{name}({arguments})')} {_kind(name)}\n\n{said}"


def _kind(name: str) -> str:
    if getattr(hooks, name).trunkline_spec["firstresult"]:
        return "decides: the first answer that is not `None` counts."
    return "guards: if it fails, everything that it guards is refused." if name in GUARD_HOOKS else "adds."
