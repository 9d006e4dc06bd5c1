"""The bucket of access tokens, and the notices of its changes."""

from trunkline.contracts.auth.tokens import AccessTokenRecord, TokensChanged
from trunkline_bus import BucketSpec, Subject, Topic

TOKEN_BUCKET: BucketSpec[AccessTokenRecord] = BucketSpec(
    name="tokens",
    payload=AccessTokenRecord,
    max_bytes=16 * 1024 * 1024,
    description="Access tokens, by id: a keyed hash, the identity and the scope of each",
)

TOKENS_CHANGED: Topic[TokensChanged] = Topic(
    name="token changes", subject=Subject("trunkline.evt.auth.tokens.changed"), payload=TokensChanged,
    doc="Access tokens were issued, ended or renewed. Whoever accepts access tokens reads them again.",
)  # fmt: skip
