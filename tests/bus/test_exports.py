"""The public interface, name by name."""

import trunkline_bus

EXPECTED = """
Ack BucketSpec Bus BusError BusMessage BusMiddleware BusSettings CallError CallTimeout ConnectionFailed ConsumerSpec
Counter DeadLetter DecodeError Delivery EmbeddedServer Endpoint Envelope Increment KeyValue KeyValueEntry LeafListener
LeafRemote LeafUser NoResponders ObjectInfo ObjectStore ObjectStoreSpec Payload ReceivedMessage Refusal RemoteFault
Request Scope SequenceConflict ServerSettings ServerStartError ServerTooOld ServerUser Service StorageFull
StoredMessage StoredRecord StreamError StreamSpec StreamUnavailable Subject SubjectError Subscription Topic Topology
TopologyChange TopologyConflict Transform apply background_tasks connect current_traceparent key_of link_span new_id
remote_parent service start_span
"""


def test_exactly_these_names_are_public() -> None:
    """The package exports the documented names, no more and no less, sorted, and all of them exist."""
    assert sorted(trunkline_bus.__all__) == sorted(EXPECTED.split())
    assert all(hasattr(trunkline_bus, name) for name in trunkline_bus.__all__)


def test_every_public_name_has_a_docstring() -> None:
    """Every exported object has a separate docstring."""
    assert [name for name in trunkline_bus.__all__ if not getattr(trunkline_bus, name).__doc__] == []


def test_every_error_is_a_bus_error() -> None:
    """One except clause catches all the bus raises; a handler's Refusal is not among them."""
    errors = [getattr(trunkline_bus, name) for name in trunkline_bus.__all__]
    raised = [one for one in errors if isinstance(one, type) and issubclass(one, Exception)]
    assert [one for one in raised if not issubclass(one, trunkline_bus.BusError)] == [trunkline_bus.Refusal]
