"""Translates failures of the vendor, botocore and urllib3 to the fixed codes. No credential is in an error."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trunkline.api.model import (
    ModelError,
    ModelFault,
    model_error,
    os_error_text,
    overflow_error,
    retry_after,
    with_cure,
)

OVERFLOW = re.compile(
    r"input is too long|prompt is too long|too many (total )?(input |text )?(tokens|bytes)|maximum context length"
    r"|exceeds? (the )?(model'?s? )?(maximum )?(context|input) (window|limit|length|token)"
    r"|context (length|window) (is )?exceeded|reduce the length of the (input|messages|prompt)",
    re.IGNORECASE,
)
"""Messages for a request that exceeds the context window, of Bedrock and of the models behind it."""

FAULTS: dict[str, ModelFault] = {
    "AccessDeniedException": "authentication",
    "ExpiredToken": "authentication",
    "ExpiredTokenException": "authentication",
    "IncompleteSignature": "authentication",
    "IncompleteSignatureException": "authentication",
    "InvalidClientTokenId": "authentication",
    "InvalidSignatureException": "authentication",
    "MissingAuthenticationTokenException": "authentication",
    "NotAuthorized": "authentication",
    "OptInRequired": "authentication",
    "SignatureDoesNotMatch": "authentication",
    "UnrecognizedClientException": "authentication",
    "RequestLimitExceeded": "rate_limited",
    "ServiceQuotaExceededException": "rate_limited",
    "Throttling": "rate_limited",
    "ThrottlingException": "rate_limited",
    "TooManyRequestsException": "rate_limited",
    "InternalFailure": "unavailable",
    "InternalServerException": "unavailable",
    "ModelNotReadyException": "unavailable",
    "ServiceUnavailable": "unavailable",
    "ServiceUnavailableException": "unavailable",
    "ModelTimeoutException": "timeout",
    "RequestTimeout": "timeout",
    "RequestTimeoutException": "timeout",
    "ConflictException": "refused",
    "ResourceNotFoundException": "refused",
    "ValidationException": "refused",
}
"""The fault of each code. Another code counts by its status."""

MODEL_FAILURES = ("ModelErrorException", "ModelStreamErrorException")
"""Codes for a failure of the model behind Bedrock, which has a status of its own."""

SIGNATURE_CODES = ("InvalidSignatureException", "SignatureDoesNotMatch", "IncompleteSignature")
"""Codes whose message quotes the signed headers, session token included, after its first sentence."""

CREDENTIALS_CURE = (
    "set AWS_PROFILE, or profile in [adapters.bedrock], or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
    "AWS_BEARER_TOKEN_BEDROCK"
)
STREAMING_CURE = "if the model cannot stream, set streaming = false in [adapters.bedrock]"
REGION_CURE = "set region in [adapters.bedrock], or AWS_REGION"

CREDENTIAL_ERRORS = (
    "NoCredentialsError",
    "NoAuthTokenError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "TokenRetrievalError",
    "UnknownTokenProviderError",
    "RefreshWithMFAUnsupportedError",
    "ProfileNotFound",
)
REGION_ERRORS = ("NoRegionError", "InvalidRegionError", "UnknownRegionError", "EndpointResolutionError")
"""The names of botocore's errors for a missing credential and for a missing or wrong region."""

ACCESS_KEY = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")


def from_exception(error: Exception, *, began: bool, secrets: Iterable[str]) -> ModelError:
    """Return the error for an exception of botocore or urllib3. ``began`` is true if the answer had begun;
    ``secrets`` are the credentials in use.
    """
    return with_cure(
        _translated(error, began=began, secrets=secrets),
        "adapters.bedrock",
        key="profile",
        address="endpoint_url",
    )


def _translated(error: Exception, *, began: bool, secrets: Iterable[str]) -> ModelError:
    if isinstance(error, ModelError):
        return error
    if isinstance(error, ImportError):
        return model_error("unavailable", f"boto3 cannot be imported ({error.name or 'unknown module'})")
    import botocore.eventstream
    import botocore.exceptions
    import botocore.parsers
    import urllib3.exceptions

    match error:
        case botocore.exceptions.ClientError():
            return from_client_error(error.response, secrets)
        case botocore.exceptions.ConnectTimeoutError():
            return model_error("timeout", "the connection could not be made in time")
        case botocore.exceptions.ReadTimeoutError() | urllib3.exceptions.ReadTimeoutError():
            return model_error("timeout", "the server sent nothing for too long")
        case botocore.exceptions.EndpointConnectionError() | botocore.exceptions.ProxyConnectionError():
            reason = os_error_text(error) or type(error).__name__
            return model_error("unavailable", f"the server cannot be reached: {reason}")
        case botocore.exceptions.SSLError():
            return model_error("unavailable", "no secure connection could be made")
        case botocore.exceptions.HTTPClientError() | urllib3.exceptions.HTTPError() | OSError():
            broken = began or isinstance(error, botocore.exceptions.ConnectionClosedError)
            text = f"the connection broke ({type(error).__name__})"
            return model_error("interrupted" if broken else "unavailable", text)
        case botocore.parsers.ResponseParserError() | botocore.eventstream.ParserError():
            return model_error("bad_response", f"an answer cannot be read ({type(error).__name__})")
        case msgspec.MsgspecError() | UnicodeDecodeError():
            return model_error("bad_response", _redacted(f"an event cannot be read: {error}", secrets))
        case botocore.exceptions.BotoCoreError():
            return _from_setup(error, secrets)
        case _:
            return model_error("bad_response", f"unexpected {type(error).__name__}")


def from_client_error(response: Mapping[str, Any], secrets: Iterable[str]) -> ModelError:
    """Return the error of a response, or of an exception within the event stream, as botocore parsed it."""
    told, about = response.get("Error", {}), response.get("ResponseMetadata", {})
    code = str(told.get("Code", ""))
    code = code[:1].upper() + code[1:]  # within the event stream the code begins with a small letter
    message = str(told.get("Message", "")) or str(response.get("originalMessage", ""))
    status = int(about.get("HTTPStatusCode") or 400)
    if code in SIGNATURE_CODES:
        message = message.partition(". ")[0].partition("\n")[0]
    detail = _redacted(f"HTTP {status} {code}: {message}", secrets)
    if "streaming" in message and code == "ValidationException":
        detail = f"{detail}; {STREAMING_CURE}"
    if OVERFLOW.search(message) and FAULTS.get(code, "refused") == "refused":
        return overflow_error(detail)
    if code in MODEL_FAILURES:
        fault = _fault_of(int(response.get("originalStatusCode") or 500))
    else:
        fault = FAULTS.get(code) or _fault_of(status)
    error = model_error(fault, detail)
    error.retry_after = retry_after(about.get("HTTPHeaders", {}))
    return error


def _fault_of(status: int) -> ModelFault:
    if status in (401, 403):
        return "authentication"
    if status == 429:
        return "rate_limited"
    if status in (408, 504):
        return "timeout"
    if status >= 500:
        return "unavailable"
    return "refused" if status >= 400 else "bad_response"


def _from_setup(error: Exception, secrets: Iterable[str]) -> ModelError:
    """Return the error for a request that botocore could not make: credentials, region, the request's form."""
    import botocore.exceptions

    name = type(error).__name__
    said = _redacted(str(error).partition("\n")[0], secrets)
    login = isinstance(error, botocore.exceptions.SSOError | botocore.exceptions.LoginError)
    if login or name in CREDENTIAL_ERRORS:
        return model_error("authentication", f"no AWS credentials ({said}); {CREDENTIALS_CURE}")
    if name in REGION_ERRORS:
        return model_error("refused", f"no usable AWS region ({said}); {REGION_CURE}")
    if isinstance(error, botocore.exceptions.ParamValidationError):
        return model_error("refused", "the request is not of the form that Bedrock's API has")
    return model_error("refused", f"the request could not be made ({name}: {said})")


def _redacted(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[key]")
    return ACCESS_KEY.sub("[key]", text)
