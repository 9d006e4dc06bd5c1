"""Reasoning that OpenAI and OpenRouter send sealed, and the check that it comes back unchanged."""

import base64
import hashlib
import json
import re
from typing import Any

ENCRYPTED = "reasoning.encrypted_content"
REASONING_MODEL = re.compile(r"o[1-9]|gpt-5(?!-chat)|gpt-[6-9]|codex-")
PLAIN_MODEL = re.compile(r"gpt-3\.5|gpt-4|gpt-5-chat|chatgpt-")
"""OpenAI's models with and without reasoning. Other names are those of other servers, which have no such rules."""

THINKING_MODEL = re.compile(r"deepseek-|kimi-")
"""The models whose vendors require ``reasoning_content`` back, when they are asked by their own names."""


def sealed(id: str, text: str) -> str:
    """Return the encrypted content of a reasoning item. Here it is only encoded."""
    return base64.urlsafe_b64encode(json.dumps({"id": id, "text": text}).encode()).decode()


def is_unchanged(item: dict[str, Any]) -> bool:
    """Report whether a reasoning item has the id, the summary and the encrypted content that were sent."""
    summary = item.get("summary")
    if not isinstance(summary, list) or not isinstance(item.get("encrypted_content"), str):
        return False
    text = "".join(str(part.get("text")) for part in summary)
    return bool(item["encrypted_content"] == sealed(str(item.get("id")), text))


def signature(text: str) -> str:
    """Return the signature of a reasoning detail."""
    return hashlib.sha256(f"signed: {text}".encode()).hexdigest()


def is_signed(detail: dict[str, Any]) -> bool:
    """Report whether a reasoning detail is as it was sent."""
    return bool(detail.get("signature") == signature(str(detail.get("text"))))
