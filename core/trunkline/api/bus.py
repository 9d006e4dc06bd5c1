"""The bus: requests, streams, and middleware around messages."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline_bus import Bus as Bus
    from trunkline_bus import BusError as BusError
    from trunkline_bus import BusMessage as BusMessage
    from trunkline_bus import BusMiddleware as BusMiddleware
    from trunkline_bus import DecodeError as DecodeError
    from trunkline_bus import Delivery as Delivery
    from trunkline_bus import KeyValueEntry as KeyValueEntry
    from trunkline_bus import Payload as Payload
    from trunkline_bus import Refusal as Refusal
    from trunkline_bus import Scope as Scope
    from trunkline_bus import SequenceConflict as SequenceConflict
    from trunkline_bus import key_of as key_of
    from trunkline_bus.backoff import Backoff as Backoff
    from trunkline_bus.streams.admin import consumer_state as consumer_state
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
