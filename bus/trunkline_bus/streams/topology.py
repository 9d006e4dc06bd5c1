"""Create and update what a ``Topology`` describes on the server. Any number of workers may do so at the same time."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

import anyio
import msgspec

from trunkline_bus.connection.nats_connection import NatsConnection
from trunkline_bus.errors import StreamError, TopologyConflict
from trunkline_bus.streams.jetstream_protocol import CONSUMER_NOT_FOUND, STREAM_NOT_FOUND, error_of
from trunkline_bus.streams.retry import request_with_retry
from trunkline_bus.streams.specs import ConsumerSpec, StreamSpec, Topology

_S = TypeVar("_S")

_PARALLEL = 4
"""A slow disk must not let a request wait for so many others that it times out."""

_EXISTS = {10058, 10065, 10013, 10148}  # another client created it in between


class TopologyChange(msgspec.Struct, frozen=True):
    """One stream, consumer or bucket that was created or updated. ``settings`` are the API names of the settings that
    differed.
    """

    kind: Literal["stream", "consumer"]
    name: str
    action: Literal["created", "updated"]
    settings: tuple[str, ...] = ()


class _OnLink(Protocol):
    link: NatsConnection


async def apply(bus: _OnLink, topology: Topology, *, remake: Collection[str] = ()) -> list[TopologyChange]:
    """Create or update everything in ``topology``, and return the changes.

    ``remake`` names streams that may be deleted and created again, without their messages, if the server does not
    change them. Raises ``TopologyConflict``, which names the setting, or ``StreamError``.
    """
    link = bus.link
    streams = [*topology.streams]
    streams += [bucket.stream() for bucket in topology.buckets]
    streams += [bucket.stream() for bucket in topology.objects]

    async def apply_stream(spec: StreamSpec) -> TopologyChange | None:
        return await (_recreated if spec.name in remake else apply_spec)(link, spec)

    changes = await _in_parallel(apply_stream, streams)
    changes += await _in_parallel(partial(apply_spec, link), topology.consumers)
    return [change for change in changes if change is not None]


async def _in_parallel(
    apply_one: Callable[[_S], Awaitable[TopologyChange | None]], specs: Sequence[_S]
) -> list[TopologyChange | None]:
    """Apply a few at a time, since most of the time is the server's. Return the results in order. After an error the
    others are cancelled; the next ``apply`` continues.
    """
    changes: list[TopologyChange | None] = [None] * len(specs)
    limit = anyio.CapacityLimiter(_PARALLEL)

    async def run(index: int, spec: _S) -> None:
        async with limit:
            changes[index] = await apply_one(spec)

    try:
        async with anyio.create_task_group() as group:
            for index, spec in enumerate(specs):
                group.start_soon(run, index, spec)
    except BaseExceptionGroup as failure:
        first = failure.exceptions[0]
        raise first from first.__cause__
    return changes


async def _recreated(link: NatsConnection, spec: StreamSpec) -> TopologyChange | None:
    """Create or update the stream. If the server refuses the update, delete the stream with its messages and create it
    again.
    """
    try:
        return await apply_spec(link, spec)
    except TopologyConflict as conflict:
        reply = await request_with_retry(link, f"STREAM.DELETE.{spec.name}")
        # A deletion whose reply comes too late is repeated, and then there is no such stream.
        if "error" in reply and reply["error"].get("err_code") != STREAM_NOT_FOUND:
            raise conflict from error_of(reply["error"], f"stream {spec.name}")
        return await apply_spec(link, spec)


async def apply_spec(link: NatsConnection, spec: StreamSpec | ConsumerSpec) -> TopologyChange | None:
    """Create or update a stream or a consumer, and return the change; None if there was nothing to change."""
    target = _Stream(spec) if isinstance(spec, StreamSpec) else _Consumer(spec)
    for _ in range(3):
        reply = await request_with_retry(link, target.info)
        if "error" not in reply:
            return await _update(link, target, reply["config"])
        if reply["error"].get("err_code") not in (STREAM_NOT_FOUND, CONSUMER_NOT_FOUND):
            raise error_of(reply["error"], target.label)
        reply = await request_with_retry(link, target.create, target.body(target.config, "create"))
        if "error" not in reply:
            return TopologyChange(target.kind, target.name, "created")
        if reply["error"].get("err_code") not in _EXISTS:
            raise _not_made(target, reply["error"])
    raise _refused(target, reply["error"], ())


async def _update(
    link: NatsConnection, target: "_Stream | _Consumer", existing: Mapping[str, Any]
) -> TopologyChange | None:
    noted = existing.get("metadata") or {}
    wanted = {**target.config, "metadata": {**noted, **target.config.get("metadata", {})}}
    differing = tuple(name for name, value in wanted.items() if not _same(value, existing.get(name)))
    if not differing:
        return None
    reply = await request_with_retry(link, target.update, target.body({**existing, **wanted}, "update"))
    if "error" in reply:
        raise _refused(target, reply["error"], differing)
    return TopologyChange(target.kind, target.name, "updated", differing)


def _not_made(target: "_Stream | _Consumer", error: dict[str, Any]) -> Exception:
    """Return the error for a stream or consumer that the server could not create. The server does not report a full
    disk, so the text says where to look.
    """
    problem = error_of(error, target.label)
    if type(problem) is not StreamError:
        return problem
    return StreamError(
        f"{target.label} cannot be created: {error.get('description', 'unknown error')}; "
        f"see that the server's disk has room and can be written, and look at the server's log",
        problem.code,
    )


def _refused(target: "_Stream | _Consumer", error: dict[str, Any], differing: tuple[str, ...]) -> Exception:
    problem = error_of(error, target.label)
    if type(problem) is not StreamError:
        return problem
    text = str(error.get("description", ""))
    named = [name for name in differing if name.replace("_", " ") in text or name in text] or list(differing)
    settings = f"another {', '.join(named)}" if named else "other settings"
    return TopologyConflict(
        f"{target.label} exists with {settings} and the server will not change it: {text}; "
        f"export what it holds and delete it, or keep the old setting",
        setting=named[0] if named else "",
    )


def _same(expected: Any, existing: Any) -> bool:
    """Report whether the server has the wanted value. The server leaves out empty values, and both -1 and 0 mean no
    limit.
    """
    return expected == existing or (existing in (None, 0, -1) and expected in (None, "", 0, -1, False, {}))


class _Stream:
    kind: Literal["stream"] = "stream"

    def __init__(self, spec: StreamSpec) -> None:
        self.name = spec.name
        self.label = f"stream {spec.name}"
        self.config = spec.config()
        self.info = f"STREAM.INFO.{spec.name}"
        self.create = f"STREAM.CREATE.{spec.name}"
        self.update = f"STREAM.UPDATE.{spec.name}"

    def body(self, config: dict[str, Any], _action: str) -> dict[str, Any]:
        return config


class _Consumer:
    kind: Literal["consumer"] = "consumer"

    def __init__(self, spec: ConsumerSpec) -> None:
        self.name = f"{spec.stream}/{spec.name}"
        self.label = f"consumer {spec.stream}/{spec.name}"
        self.config = spec.config()
        self._stream = spec.stream
        self.info = f"CONSUMER.INFO.{spec.stream}.{spec.name}"
        self.create = self.update = f"CONSUMER.CREATE.{spec.stream}.{spec.name}.{spec.filter}"

    def body(self, config: dict[str, Any], action: str) -> dict[str, Any]:
        return {"stream_name": self._stream, "config": config, "action": action}
