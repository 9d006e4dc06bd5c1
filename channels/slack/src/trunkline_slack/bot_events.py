"""The events of Slack, and what each asks of this channel. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trunkline_slack.content import unescape

SUBTYPES = ("", "file_share", "thread_broadcast")
"""The subtypes of messages that people write."""

_LINK = re.compile(r"<(?P<target>[^<>|]+)(?:\|(?P<label>[^<>]*))?>")


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """A message that is addressed to the bot. ``ts`` is its time, which is its id in its channel; ``thread`` is that of
    the message that began its thread, "" outside of threads. ``content`` is "" or names what it has besides text.
    """

    channel: str
    ts: str
    thread: str
    user: str
    text: str
    is_private: bool
    content: str = ""
    envelope: str = ""


@dataclass(frozen=True, slots=True)
class Connected:
    """A new connection, so that events may have been missed."""


@dataclass(frozen=True, slots=True)
class SlackPress:
    """A press of a button, or a slash command, which is confirmed. ``words`` are those of the button, or what was
    written after the command. What came of it is sent to ``reply_url``.
    """

    id: str
    user: str
    channel: str
    words: str
    reply_url: str
    is_command: bool = False


Event = SlackMessage | Connected | SlackPress


def parse_message(
    message: Mapping[str, Any], channel: str, bot: str, *, is_private: bool, envelope: str = ""
) -> SlackMessage | None:
    """Return what a message asks for; None if a person did not write it, or it is not addressed to the bot."""
    user, ts = message.get("user", ""), message.get("ts", "")
    if not user or not ts or user == bot or message.get("bot_id") or message.get("hidden"):
        return None
    if message.get("subtype", "") not in SUBTYPES:
        return None
    written = str(message.get("text", ""))
    mention = re.compile(rf"<@{bot}(?:\|[^<>]*)?>[:,]?\s*")
    if not is_private and mention.search(written) is None:
        return None
    text = plain_text(mention.sub("", written)).strip()
    content = "file" if message.get("files") else ""
    if not text and not content:
        return None
    thread = message.get("thread_ts", "")
    if thread == ts:
        thread = ""  # the message that began a thread is not in it
    return SlackMessage(channel, ts, thread, user, text, is_private, content, envelope)


def parse_press(payload: Mapping[str, Any]) -> SlackPress | None:
    """Return the press of a button; None for any other interaction."""
    actions = payload.get("actions") or [{}]
    if payload.get("type") != "block_actions" or actions[0].get("type") != "button":
        return None
    return SlackPress(
        id=f"{payload.get('trigger_id', '')}:{actions[0].get('action_ts', '')}",
        user=payload["user"]["id"],
        channel=payload.get("channel", {}).get("id", ""),
        words=actions[0].get("value", ""),
        reply_url=payload.get("response_url", ""),
    )


def parse_command(payload: Mapping[str, Any]) -> SlackPress:
    """Return a slash command."""
    return SlackPress(
        id=payload.get("trigger_id", ""),
        user=payload["user_id"],
        channel=payload["channel_id"],
        words=unescape(payload.get("text", "")).strip(),
        reply_url=payload.get("response_url", ""),
        is_command=True,
    )


def plain_text(text: str) -> str:
    """Return a text of Slack as a person wrote it: addresses without their marks, and names of people and channels."""
    return unescape(_LINK.sub(_shown, text))


def _shown(found: re.Match[str]) -> str:
    target, label = found["target"], found["label"] or ""
    if target[0] in "@#!":
        return f"{'@' if target[0] == '!' else target[0]}{(label or target[1:]).lstrip('@#')}"
    address = target.removeprefix("mailto:")
    return address if not label or label in target else f"{label} ({address})"
