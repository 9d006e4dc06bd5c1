"""The sender's uploaded files that a request names, within the limits of a message."""

from collections.abc import Iterable

from starlette.requests import HTTPConnection

from trunkline.contracts.conversations.messages import DocumentFile
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import sender_of, services_of


async def load_files(request: HTTPConnection, ids: Iterable[str]) -> dict[str, DocumentFile]:
    """Return the sender's uploaded files by their ids; those that do not exist are missing. Raises InvalidField if they
    are more than a message may have."""
    files, owner = services_of(request).files, sender_of(request).identity
    limits, found = services_of(request).attachments.limits, dict[str, DocumentFile]()
    too_many = InvalidField(("attachments",), "The request names too many files.", ErrorCode.TOO_LARGE)
    named = dict.fromkeys(ids)
    if len(named) > limits.files:
        raise too_many
    for id in named:
        if (file := await files.load(id, owner)) is not None:
            found[id] = file
        if sum(len(file.data) for file in found.values()) > limits.total:
            raise too_many
    return found
