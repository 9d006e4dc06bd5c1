"""Constraints on an answer: the tool calls that it may make, and the format of its text."""

from typing import Any, Literal

import msgspec


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The tool calls that an answer may or must make, as in OpenAI's ``tool_choice``.

    ``mode`` is ``auto`` (the model decides), ``required`` (at least one call) or ``none`` (no call). ``tools`` are the
    names of the tools that the model may call; empty for all offered tools. One name with ``required`` forces this
    tool.
    """

    mode: Literal["auto", "required", "none"] = "auto"
    tools: tuple[str, ...] = ()


class ResponseFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The format of the answer's text: a JSON object. ``schema`` is a JSON Schema for the object, None for any object.

    ``name`` names the schema, ``description`` tells the model what the schema is for. With ``strict`` the vendor is
    asked to enforce the schema token by token, which permits only a part of JSON Schema.
    """

    name: str = "answer"
    description: str = ""
    schema: dict[str, Any] | None = None
    strict: bool = True
