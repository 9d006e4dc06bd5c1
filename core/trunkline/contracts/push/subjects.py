"""The buckets of push notices."""

from trunkline.contracts.push.subscriptions import PushClaim, PushSubscriptionRecord
from trunkline_bus import BucketSpec

CLAIM_SECONDS = 30 * 86_400.0
"""Seconds for which a claim is kept: longer than any approval waits."""

PUSH_SUBSCRIPTION_BUCKET: BucketSpec[PushSubscriptionRecord] = BucketSpec(
    name="push-subscriptions",
    payload=PushSubscriptionRecord,
    max_bytes=4 * 1024 * 1024,
    description="Browsers that asked for notices, by id: where their vendor receives them, and for which identity",
)
PUSH_CLAIM_BUCKET: BucketSpec[PushClaim] = BucketSpec(
    name="push-claims",
    payload=PushClaim,
    ttl=CLAIM_SECONDS,
    max_bytes=16 * 1024 * 1024,
    description="Of which approvals a subscription was sent a notice",
)
