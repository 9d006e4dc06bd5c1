"""Validates a plugin's hooks before the plugin is used. Each error states the problem and the remedy."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from types import ModuleType
from typing import Any

import pluggy

from trunkline.contracts.hooks import PROJECT
from trunkline.errors import PluginError

PREFIX = f"{PROJECT}_"
MARK = f"{PROJECT}_impl"
"""The attribute that ``hookimpl`` leaves on a function (pluggy)."""


@dataclass(frozen=True, slots=True)
class MarkedFunction:
    """A function of a plugin that is, or looks like, the implementation of ``hook``."""

    hook: str
    function: Any
    options: dict[str, Any] | None


class HookManager(pluggy.PluginManager):
    """The pluggy manager. pluggy inspects every name of a plugin, which is slow; this class lets it inspect only
    marked functions.
    """

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        """Return the options of the mark; None without a mark."""
        if _is_special(name) or _mark_of(getattr(plugin, name, None)) is None:
            return None
        return super().parse_hookimpl_opts(plugin, name)


def validate_plugin(plugin: object, relay: pluggy.HookRelay) -> tuple[str, ...]:
    """Return the names of the hooks that the plugin implements.

    Raises:
        PluginError: the plugin is not valid. The error states the first problem and the remedy.
    """
    if isinstance(plugin, type):
        raise PluginError(
            f"{plugin.__name__} is a class.", hint="Let the entry point name an instance or a module."
        )
    found = list(_marked(plugin))
    for marked in found:
        _check(marked, relay)
    if not found:
        raise PluginError(
            "It implements no hook.", hint=f"Write @trunkline.hookimpl above a {PREFIX}... function."
        )
    return tuple(marked.hook for marked in found)


def _marked(plugin: object) -> Iterator[MarkedFunction]:
    for name in sorted(vars(plugin)) if isinstance(plugin, ModuleType) else dir(plugin):
        if _is_special(name):
            continue
        function = getattr(plugin, name, None)
        options = _mark_of(function)
        if (options is None and not name.startswith(PREFIX)) or not inspect.isroutine(function):
            continue
        hook = name if options is None else options.get("specname") or name
        yield MarkedFunction(hook, function, options)


def _is_special(name: str) -> bool:
    """Report whether Python gives the name a meaning of its own, as most names of an instance. It is no hook."""
    return name.startswith("__")


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


def _check(marked: MarkedFunction, relay: pluggy.HookRelay) -> None:
    caller = getattr(relay, marked.hook, None)
    if caller is None or caller.spec is None:
        known = [name for name in vars(relay) if name.startswith(PREFIX)]
        near = get_close_matches(marked.hook, known, n=1)
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
    _check_arguments(marked, tuple(caller.spec.argnames))


def _check_arguments(marked: MarkedFunction, allowed: tuple[str, ...]) -> None:
    try:
        parameters = inspect.signature(marked.function).parameters.values()
    except (TypeError, ValueError):
        return
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name not in allowed:
            may = f"It may take: {', '.join(allowed)}." if allowed else "It takes none."
            raise PluginError(f"{marked.hook} has no argument {parameter.name}.", hint=may)
