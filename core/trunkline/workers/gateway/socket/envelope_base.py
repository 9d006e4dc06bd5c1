"""The bases of the envelopes of ``/ws`` in each direction.

An envelope has a ``type``, the sender's ``id``, an ISO 8601 ``timestamp`` and a ``payload``. The server sends exactly
the documented fields, and leaves out a field of a payload at its default. It ignores unknown fields of a client.
The modules ``*_envelopes`` have types only, no I/O.
"""

from datetime import datetime
from typing import Annotated

import msgspec

from trunkline.workers.gateway.http.schemas.schema_base import In, Out

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class ClientEnvelope(In, frozen=True, kw_only=True, tag_field="type"):
    """Base of the envelopes of a client. ``id`` names the envelope in the reply. The server does not use the
    ``timestamp``.
    """

    id: Id
    timestamp: datetime


class ServerEnvelope(Out, frozen=True, kw_only=True, tag_field="type"):
    """Base of the envelopes of the server. Envelopes of the same event have the same ``id``."""

    id: str
    timestamp: datetime
