"""The bases of the public schemas of ``/conversations`` and ``/api``: closed on output, tolerant on input. The error.

Every response body of these paths is a struct of a module ``*_schemas``, so it has no undocumented fields.
``openapi.py`` generates the OpenAPI document from them. A field with a default is optional and is left out of a
response at its default.
"""

from typing import Any

import msgspec

from trunkline.errors import ErrorCode

SAID = msgspec.Meta(extra_json_schema={"pattern": r"\S"})
"""For the document: a text with a character that is no space."""

SOME = msgspec.Meta(extra_json_schema={"minItems": 1})
"""For the document: a list that is not empty. The gateway refuses both with reasons of its own."""


class Out(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of all response schemas."""


class In(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all request schemas; unknown fields are ignored."""


class Error(Out, frozen=True, kw_only=True):
    """Every error: a fixed code and its fixed sentence. The header ``X-Correlation-ID`` leads to the log.

    For an invalid request, or a block that does not exist, ``metadata.field`` is a JSON pointer into the body
    or the name of a parameter or header, and ``metadata.reason`` describes the error. For a missing or wrong
    credential, ``metadata.reason`` states where to send it. For a failed turn, ``metadata.detail`` gives the
    reason to the owner: one line without secrets and addresses.
    """

    code: ErrorCode
    message: str
    metadata: dict[str, Any] = {}
