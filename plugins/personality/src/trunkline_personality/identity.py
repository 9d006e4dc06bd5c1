"""The tools that keep who the block's agent is, in ``monitor.md``, and who the owner is, in ``identity/USER.md``."""

import re
from typing import Any, Literal

from trunkline import ApprovalDetail, ToolContext, ToolError, diff_preview, tool
from trunkline.api.memory import read_text, update_text
from trunkline_personality.context_files import AGENT, OWNER

LONGEST_NAME, LONGEST_EMOJI, LONGEST_INFO = 64, 16, 8_000
"""Characters of a name, of an emoji (families and flags are several), and of what is known of the owner."""


@tool(effect="write", idempotent=True)
async def update_monitor_identity(context: ToolContext, name: str = "", emoji: str = "") -> dict[str, Any]:
    """Change your own name or emoji in this block, in its monitor.md. Leave out what shall stay.

    Args:
        name: The new name, in a line.
        emoji: The new emoji.
    """
    await update_text(context.memory, AGENT, lambda now: _with_name(now, context.block, name, emoji))
    return {"path": AGENT, **{key: value for key, value in (("name", name), ("emoji", emoji)) if value}}


@update_monitor_identity.previewer
async def _identity_shown(context: ToolContext, name: str, emoji: str) -> ApprovalDetail:
    now = await read_text(context.memory, AGENT)
    return diff_preview(AGENT, now or None, _with_name(now, context.block, name, emoji))


@tool(effect="write")
async def update_founder_info(
    context: ToolContext, info: str, mode: Literal["append", "rewrite"] = "append"
) -> dict[str, Any]:
    """Keep what is known of the owner (the founder), in identity/USER.md, which every agent sees.

    Args:
        info: What is known, in Markdown.
        mode: append adds it at the end; rewrite puts it in place of everything, which history keeps.
    """
    new = await update_text(context.memory, OWNER, lambda now: _with_info(now, info, mode))
    return {"path": OWNER.lstrip("/"), "characters": len(new)}


@update_founder_info.previewer
async def _info_shown(context: ToolContext, info: str, mode: Literal["append", "rewrite"]) -> ApprovalDetail:
    now = await read_text(context.memory, OWNER)
    return diff_preview(OWNER.lstrip("/"), now or None, _with_info(now, info, mode))


def _with_name(now: str, block: str, name: str, emoji: str) -> str:
    wanted = {"Name": _one_line(name, LONGEST_NAME), "Emoji": _one_line(emoji, LONGEST_EMOJI)}
    if not any(wanted.values()):
        raise ToolError("Give a name, an emoji, or both. Nothing was changed.", kind="invalid_arguments")
    text = now or f"# {block}\n\n## Identity\n\n"
    for label, value in wanted.items():
        text = _with_field(text, label, value) if value else text
    return text


def _with_field(text: str, label: str, value: str) -> str:
    """The text with the value in the line of its label, which is put below the heading of identity if there is none."""
    line = f"- {label}: {value}"
    known = re.compile(rf"^- {label}:.*$", re.MULTILINE)
    if known.search(text):
        return known.sub(lambda found: line, text, count=1)
    heading = re.search(r"^## Identity[ \t]*\n+", text, re.MULTILINE)
    if heading is None:
        return f"{text.rstrip()}\n\n## Identity\n\n{line}\n"
    return f"{text[: heading.end()]}{line}\n{text[heading.end() :]}"


def _one_line(text: str, most: int) -> str:
    joined = " ".join(text.split())
    if len(joined) > most:
        raise ToolError(
            f"{joined[:20]}… has more than {most} characters. Nothing was changed.", kind="too_large"
        )
    return joined


def _with_info(now: str, info: str, mode: str) -> str:
    said = info.strip()
    if not said:
        raise ToolError(
            "Give the text to keep about the owner. Nothing was changed.", kind="invalid_arguments"
        )
    new = f"{said}\n" if mode == "rewrite" or not now.strip() else f"{now.rstrip()}\n\n{said}\n"
    if len(new) > LONGEST_INFO:
        raise ToolError(
            f"The file would have {len(new)} characters; {LONGEST_INFO} is the limit, since every agent receives it. "
            "Write less, or rewrite the whole with what still matters. Nothing was changed.",
            kind="too_large",
        )
    return new
