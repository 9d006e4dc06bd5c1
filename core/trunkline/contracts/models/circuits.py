"""The circuits of models: whether a model that failed repeatedly is called again. Kept on the bus for all monitors."""

from datetime import datetime

import msgspec

from trunkline_bus import BucketSpec


class Circuit(msgspec.Struct, frozen=True, kw_only=True):
    """The circuit of one model (``adapter/model``).

    The circuit is closed while ``open_until`` is None: the model is called. It is open until ``open_until``: another
    model is called if there is one. After that time one call is sent as a probe; its success closes the circuit.
    ``failures`` counts the failures since the last success, ``fault`` is the last failure's (``ModelFault``).
    """

    model: str
    failures: int
    fault: str
    changed_at: datetime
    open_until: datetime | None = None


CIRCUIT_BUCKET: BucketSpec[Circuit] = BucketSpec(
    name="circuits",
    payload=Circuit,
    ttl=86_400.0,
    storage="memory",
    description="The circuits of models that failed",
)
