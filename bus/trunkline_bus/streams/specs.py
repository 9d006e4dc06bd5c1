"""Specifications of streams, consumers and buckets, and their conversion to server settings. ``topology``
applies them.
"""

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
    """A JetStream stream. Times are in seconds; None means no limit.

    ``metadata`` is added to the stream's metadata; other entries stay. ``persist_async`` acknowledges a message before
    it is on disk: use it only for messages that can be requested again.
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
        """Return the settings as the JetStream API names them."""
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
    """A durable pull consumer. Times are in seconds.

    With ``pinned_group`` exactly one connected client gets the messages. If that client makes no request for
    ``pin_timeout`` seconds, another client gets them. ``batch`` is the maximum number of messages of one pull.
    ``max_deliver`` -1 means that the number of deliveries is not limited.
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
        """Return the settings as the JetStream API names them."""
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
    """The name, limits and stream of a bucket of values or of objects. ``ttl`` is in seconds; None means no expiry."""

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
    """A key-value bucket whose values are all of the struct ``payload``. ``ttl`` is in seconds; None means no expiry.

    A single key may have its own ttl. ``history`` is the number of revisions kept of each key.
    """

    payload: type[T]
    history: int = 1

    @property
    def stream_name(self) -> str:
        """The name of the stream that stores the bucket."""
        return f"KV_{_checked(self.name)}"

    def stream(self) -> StreamSpec:
        """The specification of the stream that stores the bucket."""
        return self._stream(
            self.stream_name,
            (f"$KV.{self.name}.>",),
            max_msgs_per_subject=self.history,
            allow_msg_ttl=True,
            delete_marker_ttl=3600.0,
            deny_delete=True,
        )


class ObjectStoreSpec(_StoreSpec, frozen=True, kw_only=True):
    """A bucket of objects of any size. ``ttl`` is in seconds; None means no expiry."""

    @property
    def stream_name(self) -> str:
        """The name of the stream that stores the bucket."""
        return f"OBJ_{_checked(self.name)}"

    def stream(self) -> StreamSpec:
        """The specification of the stream that stores the bucket."""
        return self._stream(self.stream_name, (f"$O.{self.name}.C.>", f"$O.{self.name}.M.>"))


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """All streams, consumers and buckets that a program needs on the server."""

    streams: tuple[StreamSpec, ...] = ()
    consumers: tuple[ConsumerSpec, ...] = ()
    buckets: tuple[BucketSpec[Any], ...] = ()
    objects: tuple[ObjectStoreSpec, ...] = ()


def _checked(name: str) -> str:
    if _BUCKET.fullmatch(name) is None:
        raise ValueError(f"bucket name {name!r} must be of A-Z a-z 0-9 _ -")
    return name
