"""What remotes may on an embedded server: the same grants as in ``deploy/nats``, with its workers' inboxes. Pure."""

from collections.abc import Sequence

from trunkline.acl.roles import remote, roles
from trunkline.acl.subject_permissions import grants
from trunkline.runtime.remotes.registry import Remote
from trunkline_bus import Guest


def guests(remotes: Sequence[Remote]) -> tuple[Guest, ...]:
    """Each remote with its key and its subjects."""
    everybody = roles((), tuple(one.name for one in remotes))
    found = []
    for one in remotes:
        given = grants(remote(one.name), everybody)
        # An embedded server's workers share one user, so their inboxes are told apart below _INBOX.
        publish = tuple(subject.replace("_INBOX_", "_INBOX.") for subject in given.publish)
        found.append(Guest(key=one.key, publish=publish, subscribe=given.subscribe))
    return tuple(found)
