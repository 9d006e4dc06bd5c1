"""Typed messages over NATS. This package does not depend on agents, blocks or turns.

Only this package imports ``nats``. The names exported here are its public interface.
"""

import trunkline_bus.nats_import  # noqa: F401 - before all that imports nats
from trunkline_bus.connection.bus import Bus, connect
from trunkline_bus.connection.middleware import BusMessage, BusMiddleware
from trunkline_bus.connection.settings import BusSettings
from trunkline_bus.connection.subscription import Subscription
from trunkline_bus.endpoint import Counter, Endpoint, Topic
from trunkline_bus.envelope import Envelope, Payload, Scope
from trunkline_bus.errors import (
    BusError,
    CallError,
    CallTimeout,
    ConnectionFailed,
    DecodeError,
    NoResponders,
    Refusal,
    RemoteFault,
    SequenceConflict,
    ServerStartError,
    ServerTooOld,
    StorageFull,
    StreamError,
    StreamUnavailable,
    SubjectError,
    TopologyConflict,
)
from trunkline_bus.ids import key_of, new_id
from trunkline_bus.messages import Ack, DeadLetter, Increment, ReceivedMessage, StoredMessage
from trunkline_bus.server.embedded_server import EmbeddedServer
from trunkline_bus.server.leaf_nodes import LeafListener, LeafRemote, LeafUser
from trunkline_bus.server.server_config import ServerSettings, ServerUser
from trunkline_bus.services.service import Request, Service, service
from trunkline_bus.streams.jetstream_protocol import StoredRecord
from trunkline_bus.streams.key_value import KeyValue, KeyValueEntry
from trunkline_bus.streams.object_store import ObjectInfo, ObjectStore
from trunkline_bus.streams.pinned_consumer import Delivery
from trunkline_bus.streams.specs import (
    BucketSpec,
    ConsumerSpec,
    ObjectStoreSpec,
    StreamSpec,
    Topology,
    Transform,
)
from trunkline_bus.streams.topology import TopologyChange, apply
from trunkline_bus.subject import Subject
from trunkline_bus.task_group import background_tasks
from trunkline_bus.trace import current_traceparent, link_span, remote_parent, start_span

__all__ = [
    "Ack",
    "BucketSpec",
    "Bus",
    "BusError",
    "BusMessage",
    "BusMiddleware",
    "BusSettings",
    "CallError",
    "CallTimeout",
    "ConnectionFailed",
    "ConsumerSpec",
    "Counter",
    "DeadLetter",
    "DecodeError",
    "Delivery",
    "EmbeddedServer",
    "Endpoint",
    "Envelope",
    "Increment",
    "KeyValue",
    "KeyValueEntry",
    "LeafListener",
    "LeafRemote",
    "LeafUser",
    "NoResponders",
    "ObjectInfo",
    "ObjectStore",
    "ObjectStoreSpec",
    "Payload",
    "ReceivedMessage",
    "Refusal",
    "RemoteFault",
    "Request",
    "Scope",
    "SequenceConflict",
    "ServerSettings",
    "ServerStartError",
    "ServerTooOld",
    "ServerUser",
    "Service",
    "StorageFull",
    "StoredMessage",
    "StoredRecord",
    "StreamError",
    "StreamSpec",
    "StreamUnavailable",
    "Subject",
    "SubjectError",
    "Subscription",
    "Topic",
    "Topology",
    "TopologyChange",
    "TopologyConflict",
    "Transform",
    "apply",
    "background_tasks",
    "connect",
    "current_traceparent",
    "key_of",
    "link_span",
    "new_id",
    "remote_parent",
    "service",
    "start_span",
]
