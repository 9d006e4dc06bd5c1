"""The permissions of remotes on an embedded server: the same grants as in ``deploy/nats``, with its workers'
inboxes. Pure.
"""

from collections.abc import Sequence

from trunkline.acl.roles import all_roles, remote_role
from trunkline.acl.subject_permissions import subject_permissions
from trunkline.runtime.remotes.registry import Remote
from trunkline_bus import LeafUser


def leaf_users(remotes: Sequence[Remote]) -> tuple[LeafUser, ...]:
    """Each remote with its key and its subjects."""
    everybody = all_roles((), tuple(one.name for one in remotes))
    found = []
    for one in remotes:
        given = subject_permissions(remote_role(one.name), everybody)
        # An embedded server's workers share one user, so their inboxes are told apart below _INBOX.
        publish = tuple(subject.replace("_INBOX_", "_INBOX.") for subject in given.publish)
        found.append(LeafUser(key=one.key, publish=publish, subscribe=given.subscribe))
    return tuple(found)
