"""The context of a conversation's first message, and of a message after a long pause.

No marker is kept: both follow from what is there. So nothing has to be set, and nobody is asked twice.
"""

from collections.abc import Sequence
from datetime import timedelta

from trunkline import ContextPart, Memory, MemoryEntry, Message, ToolError, TurnInfo
from trunkline.api.text import format_local_time
from trunkline_personality.context_files import AGENT, OWNER
from trunkline_personality.placeholders import without_placeholders

OWNER_ACTOR, CHANNEL_PREFIX = "owner", "channel:"
"""The actors of a message that count as its owner: whoever has the home's token, and whoever speaks through a channel.
The holder of another credential is somebody else."""

LONG_PAUSE = timedelta(hours=6)
"""A pause after which the context states how long it was."""

ONBOARDING_TEXT = (
    "This is your first conversation here, and nothing is written of your owner yet. First answer what they say. Then "
    "ask in one or two sentences how they want to be called, in which language, and what they want you for{named}. "
    "What they tell you, keep with `update_founder_info`{kept} (`load_tools` gives it to you). Do not ask again."
)


async def onboarding_part(turn: TurnInfo) -> ContextPart | None:
    """The first message of the first conversation: the agent gets to know its owner. Not before programs, for others,
    or where the owner said already who they are."""
    request = turn.request
    by_owner = request.actor == OWNER_ACTOR or request.actor.startswith(CHANNEL_PREFIX)
    if (
        not by_owner
        or request.trigger != "message"
        or request.one_shot
        or request.client_tools
        or _has_content(turn, OWNER)
    ):
        return None
    if any(message.role == "assistant" for message in turn.history) or await _has_other_conversations(
        turn.memory, request.conversation
    ):
        return None
    nameless = not _has_content(turn, AGENT)
    text = ONBOARDING_TEXT.format(
        named=", and whether they want to give you a name" if nameless else "",
        kept=", a name for you with `update_monitor_identity`" if nameless else "",
    )
    return ContextPart("onboarding", text, trusted=True, priority=40, share=0.1)


def resume_part(turn: TurnInfo) -> ContextPart | None:
    """Return the context about the time since the last message: a long pause, or an answer that was cut off."""
    if not turn.history:
        return None
    before, now = turn.history[-1].created_at, turn.request.message.created_at
    notes = []
    if now - before >= LONG_PAUSE:
        notes.append(
            f"This conversation goes on after {_format_pause(now - before)}: the last message is of "
            f"{format_local_time(before)}, now it is {format_local_time(now)}. What you read or found before may "
            f"have changed: look again before you rely on it."
        )
    last = [message for message in turn.history if message.turn == turn.history[-1].turn]
    if any(message.partial for message in last):
        notes.append("Your last answer was cut before its end. Take it up again only if that is asked.")
    if unknown := _unknown_outcomes(last):
        notes.append(
            f"Your last turn ended before these calls did: {', '.join(unknown)}. Look what they did before you repeat "
            "any."
        )
    return ContextPart("resume", " ".join(notes), trusted=True, priority=82, changing=True) if notes else None


def _has_content(turn: TurnInfo, path: str) -> bool:
    file = turn.files.get(path)
    return file is not None and without_placeholders(file.content) != ""


async def _has_other_conversations(memory: Memory, conversation: str) -> bool:
    """Report whether memory keeps any other conversation, in whichever block. Looks no further than the first one."""
    folders = [f"{block.path}/conversations" for block in await _list_folder(memory, "/blocks")]
    while folders:
        for entry in await _list_folder(memory, folders.pop()):
            if entry.kind == "folder":
                folders.append(entry.path)
            elif entry.path.endswith(".jsonl") and not entry.path.endswith(f"/{conversation}.jsonl"):
                return True
    return False


async def _list_folder(memory: Memory, folder: str) -> Sequence[MemoryEntry]:
    """Return the entries of a folder; none where the folder does not exist."""
    try:
        return await memory.list(folder)
    except ToolError:
        return ()


def _unknown_outcomes(messages: Sequence[Message]) -> list[str]:
    """The tools of calls of which nobody knows whether they took effect."""
    found = (message.name or "a tool" for message in messages if message.error_kind == "outcome_unknown")
    return list(dict.fromkeys(found))


def _format_pause(pause: timedelta) -> str:
    """The pause in words, of one unit."""
    hours = pause // timedelta(hours=1)
    count, unit = (hours, "hour") if hours < 48 else (pause.days, "day")
    return f"{count} {unit}{'s' if count != 1 else ''}"
