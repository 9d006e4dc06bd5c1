"""The NATS subjects to which each role may publish and subscribe. Everything else is denied. Pure.

A reply is sent to the caller's inbox, so a process that serves an endpoint may publish to the inboxes of the roles
that may call that endpoint. This is narrower than NATS' own ``allow_responses``, which permits any reply subject that
the caller chooses: a request with the reply subject ``trunkline.journal.…`` would make the service write there.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from trunkline.acl.roles import Role
from trunkline.contracts import subjects as s
from trunkline_bus import BucketSpec, ConsumerSpec, ObjectStoreSpec, Subject

DISCOVERY = ("$SRV.PING", "$SRV.INFO", "$SRV.STATS")


@dataclass(frozen=True)
class SubjectPermissions:
    """Sorted subjects, wildcards included. ``allows_responses`` permits replies to any reply subject of a received
    request. It is narrower than the callers' inboxes as long as only workers may call the role.
    """

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    allows_responses: bool = False


def inbox_prefix(user: str) -> str:
    """Return the first part of a user's reply subjects: ``bus.inbox_prefix`` with the user's name."""
    return f"_INBOX_{user}"


def subject_permissions(role: Role, everybody: tuple[Role, ...]) -> SubjectPermissions:
    """Return the subject permissions of ``role`` among ``everybody``."""
    subscribe = {
        f"{inbox_prefix(role.name)}.>",
        *_served(role),
        *(topic.subject.wildcard_filter() for topic in role.subscribes),
    }
    publish = set(_published(role, everybody))
    return SubjectPermissions(
        tuple(sorted(publish)), tuple(sorted(subscribe)), allows_responses=role.allows_responses
    )


def _served(role: Role) -> Iterator[str]:
    yield from (endpoint.subject.wildcard_filter(**dict(role.keys)) for endpoint in role.serves)
    if role.is_worker:
        for verb in DISCOVERY:
            service = f"trunkline-{_kind(role)}"
            yield from (verb, f"{verb}.{service}", f"{verb}.{service}.*")


def _published(role: Role, everybody: tuple[Role, ...]) -> Iterator[str]:
    yield from _called(role)
    if not role.allows_responses:
        yield from _askers_inboxes(role, everybody)
    for topic in role.publishes:
        yield from _fill_subject(role, topic.subject)
    for counter in role.counts:
        yield counter.subject.wildcard_filter()
        yield from _readable(counter.stream)
    yield from _stored(role)
    for consumer in role.pulls:
        yield from _consumed(consumer)
    for bucket in role.writes_buckets:
        yield f"$KV.{bucket.name}.*"
    for channel in role.channels:
        yield f"$KV.{s.CHANNEL_BUCKET.name}.{channel}.>"
        yield from _readable(s.CHANNEL_BUCKET.stream_name)
    for bucket in role.reads_buckets:
        yield from _readable(bucket.stream_name)
    yield from (f"$JS.API.STREAM.INFO.{stream}" for stream in role.reads_info)
    yield from _objects(role)
    if role.is_worker:
        yield from (f"$KV.{s.WORKER_BUCKET.name}.*", s.SPANS.subject.wildcard_filter())
    if role.manages_streams:
        yield from _prepared()
    elif not role.is_restricted:
        yield s.DEAD_LETTER_SUBJECT
        yield from _claims()
    elif role.channels:  # the gateway's replies may be large
        yield from _readable(s.CLAIM_STORE.stream_name)
    if role.discovers:
        for verb in DISCOVERY:
            yield from (verb, f"{verb}.>")
    if role.reads_all_info:
        for stream in _streams():
            yield from (f"$JS.API.STREAM.INFO.{stream}", f"$JS.API.CONSUMER.INFO.{stream}.*")


def _called(role: Role) -> Iterator[str]:
    for endpoint in role.calls:
        yield from _fill_subject(role, endpoint.subject)


def _fill_subject(role: Role, subject: Subject) -> Iterator[str]:
    """Yield the subject under every name that the role may use."""
    if "channel" in subject.keys:
        yield from (subject.wildcard_filter(channel=name) for name in role.channels)
    elif "agent" in subject.keys:
        yield from (subject.wildcard_filter(agent=agent, block=block) for agent, block in role.delegations)
    else:
        yield subject.wildcard_filter()


def _askers_inboxes(role: Role, everybody: tuple[Role, ...]) -> Iterator[str]:
    """Yield the inboxes of the roles that call this role, and of the roles whose streaming replies it may cancel."""
    for other in everybody:
        asks = any(endpoint in role.serves for endpoint in other.calls)
        streams = any(endpoint.streaming and endpoint in other.serves for endpoint in role.calls)
        if asks or streams or (role.is_worker and other.discovers):
            yield f"{inbox_prefix(other.name)}.>"


def _readable(stream: str) -> tuple[str, str]:
    return f"$JS.API.STREAM.MSG.GET.{stream}", f"$JS.API.DIRECT.GET.{stream}"


def _stored(role: Role) -> Iterator[str]:
    """Yield the permissions for reading and deleting single messages. A role that appends to a stream may read it, to
    see whether a repeated append was its own.
    """
    for stream in role.reads_streams:
        yield from _readable(stream)
    for topic in role.publishes:
        if topic.stream is not None:
            yield f"$JS.API.STREAM.MSG.GET.{topic.stream}"
    yield from (f"$JS.API.STREAM.MSG.DELETE.{stream}" for stream in role.deletes)


def _consumed(consumer: ConsumerSpec) -> Iterator[str]:
    place = f"{consumer.stream}.{consumer.name}"
    yield from (f"$JS.API.CONSUMER.{verb}.{place}" for verb in ("INFO", "MSG.NEXT", "UNPIN"))
    yield f"$JS.ACK.{place}.>"


def _objects(role: Role) -> Iterator[str]:
    for store in role.puts_objects:
        yield from (*_readable(store.stream_name), f"$O.{store.name}.C.*", f"$O.{store.name}.M.*")
    for store in role.takes_objects:
        yield from (*_readable(store.stream_name), f"$O.{store.name}.M.*")
        yield f"$JS.API.STREAM.PURGE.{store.stream_name}"


def _claims() -> Iterator[str]:
    """Yield the permissions for the object store of bodies that are too large for a message, which all roles share."""
    store = s.CLAIM_STORE
    yield f"$JS.API.STREAM.INFO.{store.stream_name}"
    yield from (*_readable(store.stream_name), f"$O.{store.name}.C.*", f"$O.{store.name}.M.*")


def _prepared() -> Iterator[str]:
    for stream in _streams():
        yield from (f"$JS.API.STREAM.{verb}.{stream}" for verb in ("INFO", "CREATE", "UPDATE"))
    for consumer in (
        s.ALL_PARTITIONS_CONSUMER,
        s.LEARNER_CONSUMER,
        s.COMPACTION_CONSUMER,
        s.DEADLINE_CONSUMER,
        s.SCHEDULE_CONSUMER,
        s.SCHEDULED_TURN_CONSUMER,
        s.AGENT_CONSUMER,
        s.TASK_CONSUMER,
    ):
        place = f"{consumer.stream}.{consumer.name}"
        yield from (f"$JS.API.CONSUMER.INFO.{place}", f"$JS.API.CONSUMER.CREATE.{place}.{consumer.filter}")


def _streams() -> tuple[str, ...]:
    whole = s.topology()
    behind: tuple[BucketSpec[object] | ObjectStoreSpec, ...] = (*whole.buckets, *whole.objects)
    return (*(stream.name for stream in whole.streams), *(bucket.stream_name for bucket in behind))


def _kind(role: Role) -> str:  # a gateway sends the messages of schedules as a channel, too
    return "channels" if role.channels and role.name != "gateway" else role.name
