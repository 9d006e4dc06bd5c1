"""Validates a plugin's hooks before the plugin is used. Each error states the problem and the remedy."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import ModuleType
from typing import Any

from trunkline.contracts import hooks as hookspecs
from trunkline.contracts.hooks import PROJECT
from trunkline.errors import PluginError

PREFIX = f"{PROJECT}_"
MARK = f"{PROJECT}_impl"
"""The attribute that ``hookimpl`` leaves on a function (pluggy)."""


@dataclass(frozen=True, slots=True)
class HookFunction:
    """A valid implementation of ``hook``: the function that a plugin has as its attribute ``name``.

    ``arguments`` are the names of the arguments that it takes, in its order. ``rank`` is -1 for ``tryfirst``, 1 for
    ``trylast``, otherwise 0.
    """

    hook: str
    name: str
    arguments: tuple[str, ...]
    rank: int


@dataclass(frozen=True, slots=True)
class MarkedFunction:
    """A function of a plugin that is, or looks like, the implementation of ``hook``. ``options`` are those of its mark,
    None without a mark.
    """

    hook: str
    name: str
    function: Any
    options: dict[str, Any] | None


def validate_plugin(plugin: object) -> tuple[HookFunction, ...]:
    """Return the implementations of hooks in the plugin.

    Raises:
        PluginError: the plugin is not valid. The error states the first problem and the remedy.
    """
    if isinstance(plugin, type):
        raise PluginError(
            f"{plugin.__name__} is a class.", hint="Let the entry point name an instance or a module."
        )
    found = tuple(_checked(marked) for marked in _marked(plugin))
    if not found:
        raise PluginError(
            "It implements no hook.", hint=f"Write @trunkline.hookimpl above a {PREFIX}... function."
        )
    return found


@cache
def _hook_arguments() -> Mapping[str, tuple[str, ...]]:
    """Return the arguments that each hook offers to its implementations."""
    names = (name for name in hookspecs.__all__ if name.startswith(PREFIX))
    return {name: tuple(inspect.signature(getattr(hookspecs, name)).parameters) for name in names}


def _marked(plugin: object) -> Iterator[MarkedFunction]:
    for name in sorted(vars(plugin)) if isinstance(plugin, ModuleType) else dir(plugin):
        if name.startswith("__"):  # Python gives such names a meaning of its own
            continue
        function = getattr(plugin, name, None)
        options = _mark_of(function)
        if (options is None and not name.startswith(PREFIX)) or not inspect.isroutine(function):
            continue
        hook = name if options is None else options.get("specname") or name
        yield MarkedFunction(hook, name, function, options)


def _mark_of(value: Any) -> dict[str, Any] | None:
    """Return the options that ``hookimpl`` left on a value; None for any other value. A module may contain objects
    that raise when an attribute is read, such as unbound proxies. They are no hooks.

    A module that the plugin imported is not inspected: a lookup of a missing name in a public module searches all
    other modules.
    """
    if isinstance(value, ModuleType):
        return None
    try:
        options = getattr(value, MARK, None)
    except Exception:
        return None
    return options if isinstance(options, dict) else None


def _checked(marked: MarkedFunction) -> HookFunction:
    allowed = _hook_arguments().get(marked.hook)
    if allowed is None:
        near = get_close_matches(marked.hook, _hook_arguments(), n=1)
        hint = f"Did you mean {near[0]}?" if near else "docs/reference lists the hooks."
        raise PluginError(f"There is no hook {marked.hook}.", hint=hint)
    if inspect.iscoroutinefunction(marked.function) or inspect.isasyncgenfunction(marked.function):
        raise PluginError(
            f"{marked.hook} is `async def`, but hooks are synchronous declarations.",
            hint="Write `def`, and do asynchronous work in the objects that the hook yields.",
        )
    if marked.options is None:
        raise PluginError(f"{marked.hook} is not marked.", hint="Write @trunkline.hookimpl above it.")
    if marked.options.get("hookwrapper") or marked.options.get("wrapper"):
        raise PluginError(
            f"{marked.hook} is a wrapper, which hooks have no use for.",
            hint="To change something on its way, yield a middleware.",
        )
    rank = bool(marked.options.get("trylast")) - bool(marked.options.get("tryfirst"))
    return HookFunction(marked.hook, marked.name, _arguments(marked, allowed), rank)


def _arguments(marked: MarkedFunction, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments that the function must be given. One with a default is the function's own."""
    try:
        parameters = inspect.signature(marked.function).parameters.values()
    except (TypeError, ValueError):
        return ()
    names = tuple(parameter.name for parameter in parameters if parameter.default is parameter.empty)
    for name in names:
        if name not in allowed:
            may = f"It may take: {', '.join(allowed)}." if allowed else "It takes none."
            raise PluginError(f"{marked.hook} has no argument {name}.", hint=may)
    return names
