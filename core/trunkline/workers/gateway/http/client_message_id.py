"""The client's id of a message, by which a repeated request is recognised."""

from starlette.requests import HTTPConnection

from trunkline.workers.gateway.errors import InvalidField

CLIENT_ID_LENGTH = 200


def client_id(request: HTTPConnection, metadata: dict[str, object]) -> str | None:
    """Return the id by which a repeated request is recognised: ``metadata.client_message_id``, else
    ``Idempotency-Key``.

    Raises InvalidField when it is no text of 1 to CLIENT_ID_LENGTH characters.
    """
    client_key = metadata.get("client_message_id", request.headers.get("idempotency-key"))
    if client_key is None:
        return None
    if not isinstance(client_key, str) or not 0 < len(client_key) <= CLIENT_ID_LENGTH:
        in_body = "client_message_id" in metadata
        field = ("metadata", "client_message_id") if in_body else "Idempotency-Key"
        raise InvalidField(field, f"It is a text of 1 to {CLIENT_ID_LENGTH} characters.")
    return client_key
