"""Locks for calls that must not run concurrently, because they write to the same path of a workspace.

The locks are valid within one worker. Workers on several hosts that share a folder rely on the tools' atomic
replacement of files.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from trunkline._util.paths import check_path, is_absolute_path, real_path
from trunkline.contracts.tools.messages import ToolSpec
from trunkline.contracts.tools.tool import ToolInvocation
from trunkline.policy.read_only_programs import is_read_only_call


@dataclass(slots=True)
class _CountedLock:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    users: int = 0


class PathLocks:
    """One lock per path, kept as long as a call uses it."""

    def __init__(self) -> None:
        self._locks: dict[str, _CountedLock] = {}

    @asynccontextmanager
    async def acquire(self, invocation: ToolInvocation) -> AsyncIterator[None]:
        """Hold the locks of all paths that the call changes. They are acquired in a fixed order, so calls cannot
        deadlock.
        """
        async with AsyncExitStack() as stack:
            for key in sorted(set(lock_keys(invocation))):
                await stack.enter_async_context(self._one(key))
            yield

    @asynccontextmanager
    async def _one(self, key: str) -> AsyncIterator[None]:
        counted = self._locks.setdefault(key, _CountedLock())
        counted.users += 1
        try:
            async with counted.lock:
                yield
        finally:
            counted.users -= 1
            if not counted.users:
                del self._locks[key]


def lock_keys(invocation: ToolInvocation) -> Iterator[str]:
    """Yield the keys of the paths that the call changes. Calls that only read have none, and neither have programs
    that only read.

    Links are not followed below a workspace, so two texts mean the same file only if their normal forms are equal.
    Absolute paths are resolved. Raises PathRefused for a path that the path stage would refuse.
    """
    if invocation.spec.effect == "read" or is_read_only_call(invocation.spec, invocation.arguments):
        return
    for path in invocation_paths(invocation):
        if is_absolute_path(path):
            yield real_path(path)
        else:
            yield f"{real_path(str(invocation.context.workspace))}/{check_path(path)}"


def invocation_paths(invocation: ToolInvocation) -> Iterator[str]:
    """Yield the paths among the arguments, as the tool's ``paths`` declare them; a parameter may contain a
    list of them."""
    return path_arguments(invocation.spec, invocation.arguments)


def path_arguments(spec: ToolSpec, arguments: Mapping[str, Any]) -> Iterator[str]:
    """See ``invocation_paths``."""
    return argument_texts(spec.paths, arguments)


def argument_texts(names: Iterable[str], arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts in the arguments of these names, including texts in lists."""
    for name in names:
        value = arguments.get(name)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str):
                yield one
