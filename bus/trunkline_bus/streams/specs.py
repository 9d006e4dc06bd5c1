"""Streams, consumers and buckets as plain data. Turning them into server settings is here, applying them is not."""

import re
from typing import Any, Generic, Literal, TypeVar

import msgspec

from trunkline_bus.streams.jetstream_protocol import nanoseconds

T = TypeVar("T")

Storage = Literal["file", "memory"]
_BUCKET = re.compile(r"[A-Za-z0-9_-]+")


class Transform(msgspec.Struct, frozen=True):
    """A subject transform of a stream, for instance to ``…{{partition(16,1,2)}}…``."""

    source: str
    destination: str


class StreamSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A JetStream stream. Times in seconds; None means no limit.

    ``metadata`` is noted with the stream; what others noted there stays.
    ``persist_async`` acknowledges before the disk has it: only for what may be asked for again.
    """

    name: str
    subjects: tuple[str, ...]
    description: str = ""
    retention: Literal["limits", "workqueue", "interest"] = "limits"
    max_age: float | None = None
    max_bytes: int | None = None
    max_msgs: int | None = None
    max_msgs_per_subject: int | None = None
    max_msg_size: int | None = None
    discard: Literal["old", "new"] = "old"
    storage: Storage = "file"
    replicas: int = 1
    duplicate_window: float = 120.0
    transform: Transform | None = None
    persist_async: bool = False
    allow_direct: bool = True
    allow_rollup: bool = False
    allow_msg_ttl: bool = False
    allow_schedules: bool = False
    allow_counter: bool = False
    delete_marker_ttl: float | None = None
    deny_delete: bool = False
    metadata: dict[str, str] = {}

    def config(self) -> dict[str, Any]:
        """The settings as the JetStream API names them."""
        window = min(self.duplicate_window, self.max_age) if self.max_age else self.duplicate_window
        config: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "subjects": list(self.subjects),
            "retention": self.retention,
            "max_age": nanoseconds(self.max_age or 0),
            "max_bytes": self.max_bytes or -1,
            "max_msgs": self.max_msgs or -1,
            "max_msgs_per_subject": self.max_msgs_per_subject or -1,
            "max_msg_size": self.max_msg_size or -1,
            "discard": self.discard,
            "storage": self.storage,
            "num_replicas": self.replicas,
            "duplicate_window": nanoseconds(window),
            "allow_direct": self.allow_direct,
            "allow_rollup_hdrs": self.allow_rollup or self.allow_schedules,  # schedules need it
            "allow_msg_ttl": self.allow_msg_ttl,
            "allow_msg_schedules": self.allow_schedules,
            "allow_msg_counter": self.allow_counter,
            "deny_delete": self.deny_delete,
            "subject_delete_marker_ttl": nanoseconds(self.delete_marker_ttl or 0),
        }
        if self.transform is not None:
            config["subject_transform"] = {"src": self.transform.source, "dest": self.transform.destination}
        if self.metadata:
            config["metadata"] = self.metadata
        if self.persist_async:
            config["persist_mode"] = "async"
        return config


class ConsumerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A durable pull consumer. Times in seconds.

    With ``pinned_group`` exactly one live client gets the messages, and another within ``pin_timeout`` once it is
    silent. ``batch`` is how many messages one pull may bring; -1 in ``max_deliver`` means any number of tries.
    """

    stream: str
    name: str
    filter: str
    description: str = ""
    ack_wait: float = 30.0
    max_ack_pending: int = 256
    max_deliver: int = -1
    pinned_group: str | None = None
    pin_timeout: float = 5.0
    deliver: Literal["all", "new", "last_per_subject"] = "all"
    backoff: tuple[float, ...] = ()
    inactive_threshold: float | None = None
    replicas: int = 0
    storage: Storage = "file"
    batch: int = 16

    def config(self) -> dict[str, Any]:
        """The settings as the JetStream API names them."""
        config: dict[str, Any] = {
            "durable_name": self.name,
            "name": self.name,
            "description": self.description,
            "filter_subject": self.filter,
            "ack_policy": "explicit",
            "ack_wait": nanoseconds(self.ack_wait),
            "max_ack_pending": self.max_ack_pending,
            "max_deliver": self.max_deliver,
            "deliver_policy": self.deliver,
            "replay_policy": "instant",
            "num_replicas": self.replicas,
        }
        if self.backoff:
            config["backoff"] = [nanoseconds(seconds) for seconds in self.backoff]
            config["ack_wait"] = config["backoff"][0]
        if self.inactive_threshold is not None:
            config["inactive_threshold"] = nanoseconds(self.inactive_threshold)
        if self.storage == "memory":
            config["mem_storage"] = True
        if self.pinned_group is not None:
            config["priority_groups"] = [self.pinned_group]
            config["priority_policy"] = "pinned_client"
            config["priority_timeout"] = nanoseconds(self.pin_timeout)
        return config


class _StoreSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The name, the limits and the stream of a bucket, of values or of objects. ``ttl`` in seconds, None: for ever."""

    name: str
    description: str = ""
    ttl: float | None = None
    storage: Storage = "file"
    replicas: int = 1
    max_bytes: int | None = None

    def _stream(self, name: str, subjects: tuple[str, ...], **options: Any) -> StreamSpec:
        return StreamSpec(
            name=name,
            subjects=subjects,
            description=self.description,
            max_age=self.ttl,
            max_bytes=self.max_bytes,
            storage=self.storage,
            replicas=self.replicas,
            discard="new",
            allow_rollup=True,
            **options,
        )


class BucketSpec(_StoreSpec, Generic[T], frozen=True, kw_only=True):
    """A key-value bucket whose values are all of the struct ``payload``. ``ttl`` in seconds, None: for ever.

    Single keys may have their own ttl. ``history`` is how many revisions of a key are kept.
    """

    payload: type[T]
    history: int = 1

    @property
    def stream_name(self) -> str:
        """The stream behind the bucket."""
        return f"KV_{_checked(self.name)}"

    def stream(self) -> StreamSpec:
        """The stream behind the bucket."""
        return self._stream(
            self.stream_name,
            (f"$KV.{self.name}.>",),
            max_msgs_per_subject=self.history,
            allow_msg_ttl=True,
            delete_marker_ttl=3600.0,
            deny_delete=True,
        )


class ObjectStoreSpec(_StoreSpec, frozen=True, kw_only=True):
    """A bucket of objects of any size. ``ttl`` in seconds, None: for ever."""

    @property
    def stream_name(self) -> str:
        """The stream behind the bucket."""
        return f"OBJ_{_checked(self.name)}"

    def stream(self) -> StreamSpec:
        """The stream behind the bucket."""
        return self._stream(self.stream_name, (f"$O.{self.name}.C.>", f"$O.{self.name}.M.>"))


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a program expects to exist on the server."""

    streams: tuple[StreamSpec, ...] = ()
    consumers: tuple[ConsumerSpec, ...] = ()
    buckets: tuple[BucketSpec[Any], ...] = ()
    objects: tuple[ObjectStoreSpec, ...] = ()


def _checked(name: str) -> str:
    if _BUCKET.fullmatch(name) is None:
        raise ValueError(f"bucket name {name!r} must be of A-Z a-z 0-9 _ -")
    return name
