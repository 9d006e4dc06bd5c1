"""From what can go wrong to the fixed codes. No vendor exception and no key gets past here."""

import json
from typing import Any

import msgspec

from trunkline.api.model import ModelError, model_error, os_error_text, overflow_error, retry_after

OVERFLOW_CODES = ("context_length_exceeded", "exceed_context_size_error", "context_window_exceeded")
OVERFLOW_WORDS = (
    "maximum context length",  # OpenAI, vLLM, OpenRouter, Mistral, DeepSeek, Ollama
    "exceeds the context window",  # OpenAI Responses
    "context length exceeded",
    "context window exceed",
    "exceeds the available context size",  # llama.cpp
    "context size has been exceeded",  # llama.cpp
    "longer than the maximum model length",  # vLLM
    "longer than the model's context length",  # SGLang
    "exceeds context length",  # Ollama
    "exceeded max context length",  # Ollama
    "prompt too long",  # Ollama
    "prompt is too long",  # Anthropic's compatible endpoint
    "greater than the context length",  # LM Studio
    "when context the overflows",  # LM Studio, as it is spelt there
    "when the context overflows",  # LM Studio
    "reached context length",  # LM Studio
    "reduce the length of the messages",  # Groq, vLLM
    "exceeds the maximum number of tokens allowed",  # Gemini's compatible endpoint
    "exceeded model token limit",  # Moonshot
    "maximum prompt length is",  # xAI
)


def from_status(status: int, body: Any, key: str) -> ModelError:
    """The error of an HTTP answer, or of an error event in a stream that carries such a status."""
    code, message = _code_and_message(body)
    detail = f"HTTP {status} {code}: {message}".replace(key, "[key]")
    if status in (401, 403):
        return model_error("authentication", detail)
    if status in (402, 429) or code in ("rate_limit_exceeded", "insufficient_quota"):
        return model_error("rate_limited", detail)
    if _is_overflow(code, message):
        return overflow_error(detail)
    if status in (408, 504):
        return model_error("timeout", detail)
    if status >= 500:
        return model_error("unavailable", detail)
    return model_error("refused" if status >= 400 else "bad_response", detail)


def from_stream_error(error: Any, key: str) -> ModelError:
    """The error that a server reports in the middle of its answer. Without a status it counts as its own failure."""
    code, _ = _code_and_message(error)
    status = int(code) if code.isdigit() and 400 <= int(code) < 600 else _STATUS_OF.get(code, 500)
    return from_status(status, error, key)


def from_exception(error: Exception, *, began: bool, key: str) -> ModelError:
    """The error for an exception of the SDK or its HTTP library. ``began`` is true if the answer had begun."""
    import httpx2
    import openai

    match error:
        case ModelError():
            return error
        case openai.APIStatusError():
            translated = from_status(error.status_code, error.body, key)
            translated.retry_after = retry_after(error.response.headers)
            return translated
        case openai.APITimeoutError() if isinstance(error.__cause__, httpx2.ConnectTimeout):
            return model_error("timeout", "the connection could not be made in time")
        case openai.APITimeoutError():
            return model_error("timeout", "the server sent nothing for too long")
        case openai.APIConnectionError():
            return _from_connection(error.__cause__, began)
        case httpx2.TransportError():  # in bytes that the SDK passes on as they come
            return _from_connection(error, began)
        case openai.APIError():
            return from_stream_error(error.body if error.body is not None else error.message, key)
        case json.JSONDecodeError() | UnicodeDecodeError() | msgspec.MsgspecError():
            return model_error("bad_response", f"an event cannot be read: {error}".replace(key, "[key]"))
        case _:
            return model_error("bad_response", f"unexpected {type(error).__name__}")


def _from_connection(cause: BaseException | None, began: bool) -> ModelError:
    """Only the kind of the failure is told: some messages of the HTTP library quote headers."""
    import httpx2

    kind = type(cause).__name__
    if isinstance(cause, httpx2.ConnectError):
        return model_error("unavailable", f"the server cannot be reached: {os_error_text(cause) or cause}")
    broken = isinstance(cause, httpx2.ReadError | httpx2.WriteError | httpx2.RemoteProtocolError)
    if began or broken:
        return model_error("interrupted", f"the connection broke ({kind})")
    return model_error("unavailable", f"the request could not be sent ({kind})")


def _code_and_message(body: Any) -> tuple[str, str]:
    """Code and message out of the many shapes in which servers put them."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return "", str(error or "")
    message = error.get("message") or error.get("detail") or body.get("detail") or ""
    codes = (error.get("code"), error.get("type"), body.get("code"))
    known = next((str(code) for code in codes if str(code) in OVERFLOW_CODES), None)
    return known or str(next((code for code in codes if code is not None), "")), str(message)


def _is_overflow(code: str, message: str) -> bool:
    lower = message.lower()
    return code in OVERFLOW_CODES or any(words in lower for words in OVERFLOW_WORDS)


_STATUS_OF = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "bio_policy": 400,
}
