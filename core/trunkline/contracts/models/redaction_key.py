"""The key of placeholders: what replaces a secret in requests to vendors is derived from it. Kept on the bus for all
processes that ask vendors, so that a secret has the same placeholder in each of them, also after a restart.
"""

import msgspec

from trunkline_bus import BucketSpec


class RedactionKey(msgspec.Struct, frozen=True, kw_only=True):
    """A random key. It protects no secret by itself: without it, a vendor cannot find out what a placeholder stands for
    by trying values.
    """

    key: str


REDACTION_BUCKET: BucketSpec[RedactionKey] = BucketSpec(
    name="redaction",
    payload=RedactionKey,
    ttl=365 * 86_400.0,
    max_bytes=1024 * 1024,
    description="The key from which the placeholders of secrets are derived",
)
