"""The redactor of one process, which all of its middleware uses. Its key changes once, when the bus gives the key that
all processes share.
"""

from trunkline.api.model import ModelRequest
from trunkline_redaction.key_source import KeySource
from trunkline_redaction.placeholders import Placeholders
from trunkline_redaction.request_redactor import RequestRedactor
from trunkline_redaction.settings import RedactionSettings


class ProcessRedactor:
    """Redacts requests with the present key."""

    def __init__(self, settings: RedactionSettings, keys: KeySource) -> None:
        self._settings = settings
        self._keys = keys
        self._made: tuple[bytes, RequestRedactor] | None = None

    def redact(self, request: ModelRequest) -> tuple[ModelRequest, Placeholders]:
        """Return the request with placeholders, and what they stand for."""
        key = self._keys.key
        if self._made is None or self._made[0] != key:
            self._made = key, RequestRedactor(self._settings, key)
        return self._made[1].redact(request)
