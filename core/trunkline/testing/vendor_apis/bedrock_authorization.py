"""Verifies AWS Signature Version 4 of a request by computing it again. Pure functions."""

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, quote

from trunkline.testing.vendor_apis.vendor_api import RuleViolation

ACCESS_KEY = "AKIATRUNKLINE0TEST00"
SECRET_KEY = "trunkline-test-secret-key-of-no-account"
"""The credentials that the scripted AWS accepts."""

ALGORITHM = "AWS4-HMAC-SHA256"
AUTHORIZATION = re.compile(
    rf"{ALGORITHM} Credential=(?P<key>[^/,]+)/(?P<scope>[^,]+), ?SignedHeaders=(?P<signed>[^,]+), ?"
    r"Signature=(?P<signature>[0-9a-f]{64})"
)
SCOPE = re.compile(r"(?P<date>\d{8})/(?P<region>[a-z0-9-]+)/(?P<service>[a-z0-9-]+)/aws4_request")
SAFE = "-._~"


def signature_violations(
    method: str, path: str, query: str, headers: Mapping[str, str], content: bytes, service: str
) -> Iterator[RuleViolation]:
    """Yield what AWS would refuse in the signature of a request. ``path`` is encoded as it was sent."""
    given = headers.get("authorization", "")
    if given.startswith("Bearer "):
        return  # a Bedrock API key
    parts = AUTHORIZATION.fullmatch(given)
    scope = SCOPE.fullmatch(parts["scope"]) if parts else None
    if parts is None or scope is None:
        yield RuleViolation("authorization", "Missing Authentication Token")
        return
    signed = parts["signed"].split(";")
    needed = {"host", "x-amz-date", *({"x-amz-security-token"} & set(headers))}
    if missing := sorted(needed - set(signed)):
        yield RuleViolation("authorization", f"these headers are not signed: {', '.join(missing)}")
    if scope["service"] != service:
        yield RuleViolation("authorization", f"Credential should be scoped to correct service: '{service}'.")
    if not headers.get("x-amz-date", "").startswith(scope["date"]):
        yield RuleViolation("x-amz-date", "Date in Credential scope does not match the date of the request")
    if parts["key"] != ACCESS_KEY:
        yield RuleViolation("authorization", "The security token included in the request is invalid.")
    request = canonical_request(
        method, path, query, {name: headers.get(name, "") for name in signed}, content
    )
    expected = sign(request, headers.get("x-amz-date", ""), parts["scope"])
    if not hmac.compare_digest(expected, parts["signature"]):
        yield RuleViolation(
            "authorization", "The request signature we calculated does not match the signature you provided."
        )


def canonical_request(method: str, path: str, query: str, headers: Mapping[str, str], content: bytes) -> str:
    """Return the canonical form of a request with its signed headers."""
    pairs = sorted((quote(name, SAFE), quote(value, SAFE)) for name, value in parse_qsl(query, True))
    lines = [f"{name}:{' '.join(headers[name].split())}" for name in sorted(headers)]
    parts = [
        method,
        quote(path, f"/{SAFE}"),  # the path as it is sent is encoded once more
        "&".join(f"{name}={value}" for name, value in pairs),
        *lines,
        "",
        ";".join(sorted(headers)),
        hashlib.sha256(content).hexdigest(),
    ]
    return "\n".join(parts)


def sign(request: str, date: str, scope: str, secret: str = SECRET_KEY) -> str:
    """Return the signature of a canonical request."""
    to_sign = "\n".join([ALGORITHM, date, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, to_sign.encode(), "sha256").hex()
