"""The slash commands: a table and the parser. What each one does is in the modules of actions."""

import difflib
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunkline import TrunklineError
from trunkline.api.channel import DEFAULT_MODEL
from trunkline_terminal import command_actions, input_actions, platform_actions

if TYPE_CHECKING:
    from trunkline_terminal.chat_session import ChatSession

CommandAction = Callable[["ChatSession", str], Awaitable[bool | None]]

AGENT_COMMANDS = ("tool", "compact", "rebirth")
"""Commands that the agent carries out. They are sent as messages, so that they work in every channel."""

_WORD = re.compile(r"/([A-Za-z][A-Za-z-]*)(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A slash command. ``usage`` is its line in ``/help``; ``now`` commands do not wait for messages that are being
    sent."""

    name: str
    usage: str
    help: str
    act: CommandAction
    now: bool = False


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A command as somebody typed it."""

    command: SlashCommand
    rest: str

    async def run(self, session: "ChatSession") -> bool:
        """Do it. Returns False when the person leaves."""
        return await self.command.act(session, self.rest) is not False


class UnknownCommand(TrunklineError):
    """There is no such command."""


def parse(line: str) -> CommandCall | str:
    """A command, or the message to send.

    ``/tool …`` and ``/compact …`` are for the agent and pass; ``//x`` sends ``/x``; ``/etc/hosts`` is no command.

    Raises:
        UnknownCommand: it looks like a command and is none.
    """
    text = line.strip()
    if text.startswith("//"):
        return text[1:]
    found = _WORD.fullmatch(text)
    if found is None:
        return line
    name, rest = found.group(1).lower(), (found.group(2) or "").strip()
    if name in AGENT_COMMANDS:
        return line
    if name.startswith("switch-"):
        name, rest = "switch", f"{name.removeprefix('switch-')} {rest}".strip()
    for command in COMMANDS:
        if name == command.name:
            return CommandCall(command, rest)
    near = nearest_word(name, NAMES)
    hint = f"Did you mean /{near}?" if near else "/help lists the commands; begin with // to send a slash."
    raise UnknownCommand(f"There is no command /{name}.", hint=hint)


def nearest_word(word: str, among: Iterable[str]) -> str | None:
    """The most similar of some words, or None when none is similar."""
    return next(iter(difflib.get_close_matches(word, list(among), n=1, cutoff=0.6)), None)


async def list_commands(session: "ChatSession", rest: str) -> None:
    width = max(len(command.usage) for command in COMMANDS)
    lines = [f"{command.usage:<{width}}  {command.help}" for command in COMMANDS if command.help]
    session.screen.note("\n".join([*lines, "", *_KEYS]), "plain")


_KEYS = (
    "/tool NAME key=value runs a tool, whatever model answers; /tool lists them. //text sends /text.",
    "/compact [FOCUS] summarises the older messages for the model; /compact undo withdraws the summary.",
    "/rebirth [FOCUS] summarises all messages into memory.md of the block, and begins anew with it.",
    "@ completes the name of a file, which the message then brings. A pasted path of a file becomes such a name.",
    "Alt-Enter or Ctrl-J begins a new line. Ctrl-R finds earlier input. Ctrl-T shows the background tasks.",
    "A message typed while a turn runs waits for it; Alt-↑ takes it back. Ctrl-S sends it into the running turn.",
    "Ctrl-C ends the running turn; a second one leaves. Ctrl-D leaves.",
)


COMMANDS = (
    # Conversations
    SlashCommand("help", "/help", "list the commands", list_commands),
    SlashCommand("new", "/new", "begin a new conversation", command_actions.begin_new),
    SlashCommand(
        "clear", "/clear", "empty the screen and begin a new conversation", input_actions.clear_screen
    ),
    SlashCommand(
        "resume", "/resume [WORDS]", "pick a conversation to continue", command_actions.resume_picked
    ),
    SlashCommand(
        "conversations", "/conversations [WORDS]", "list conversations", command_actions.list_conversations
    ),
    SlashCommand(
        "open", "/open [NUMBER|ID]", "continue another conversation", command_actions.open_conversation
    ),
    SlashCommand("title", "/title TEXT", "give this conversation a title", command_actions.set_title),
    SlashCommand(
        "find", "/find WORDS", "find words in this conversation", input_actions.find_words, now=True
    ),
    SlashCommand("save", "/save [FILE]", "save the conversation as JSON", command_actions.save_conversation),
    SlashCommand(
        "load", "/load [FILE]", "begin a new conversation from a saved one", command_actions.load_conversation
    ),
    # Turns
    SlashCommand(
        "show",
        "/show [N]",
        "the last tool result in full, or the Nth last",
        command_actions.show_result,
        now=True,
    ),
    SlashCommand("cancel", "/cancel", "end the running turn", command_actions.cancel_turn, now=True),
    SlashCommand(
        "steer", "/steer TEXT", "send a text to the running turn", command_actions.steer_turn, now=True
    ),
    SlashCommand("queue", "/queue", "list the messages that wait", input_actions.list_queue, now=True),
    SlashCommand(
        "edit",
        "/edit [N]",
        "take a message that waits back to the input",
        input_actions.edit_queued,
        now=True,
    ),
    SlashCommand("drop", "/drop [N]", "cancel a message that waits", input_actions.drop_queued, now=True),
    SlashCommand(
        "paste", "/paste", "attach the picture in the clipboard", input_actions.paste_picture, now=True
    ),
    SlashCommand("trace", "/trace [TURN]", "show the trace of the last turn", command_actions.show_trace),
    SlashCommand(
        "context", "/context [TURN]", "show what the model saw, and its tokens", command_actions.show_context
    ),
    # Decisions
    SlashCommand(
        "approvals",
        "/approvals",
        "list the open approvals, here and elsewhere",
        command_actions.list_approvals,
        now=True,
    ),
    SlashCommand(
        "approve",
        "/approve ID [SCOPE]",
        "allow it: once, conversation or always",
        command_actions.approve_call,
        now=True,
    ),
    SlashCommand("deny", "/deny ID", "deny it", command_actions.deny_call, now=True),
    SlashCommand(
        "answer",
        "/answer ID TEXT",
        "answer a question of an agent",
        command_actions.answer_question,
        now=True,
    ),
    # Blocks and the platform
    SlashCommand(
        "status", "/status", "show block, conversation, turn, tokens and cost", command_actions.show_status
    ),
    SlashCommand("blocks", "/blocks", "list the blocks", command_actions.list_blocks),
    SlashCommand(
        "switch",
        "/switch BLOCK [TEXT]",
        "go to another block, and send TEXT there",
        command_actions.switch_block,
    ),
    SlashCommand(
        "create-block",
        "/create-block NAME [TEXT]",
        "create a block, go there, and send TEXT",
        platform_actions.create_block,
    ),
    SlashCommand(
        "model",
        f"/model [NAME|{DEFAULT_MODEL}]",
        "show or choose the model of this conversation",
        command_actions.choose_model,
    ),
    SlashCommand(
        "params",
        "/params [KEY=VALUE|default]",
        "show or set parameters of the model, for this session",
        input_actions.set_parameters,
    ),
    SlashCommand(
        "plan", "/plan [on|off]", "have the agent only read and plan", platform_actions.set_plan_mode
    ),
    SlashCommand(
        "memory", "/memory [FILE|clear]", "show what the agent always knows", platform_actions.show_memory
    ),
    SlashCommand("skills", "/skills [NAME]", "list the skills, or show one", platform_actions.show_skills),
    SlashCommand("mcp", "/mcp", "list the MCP servers and their state", platform_actions.list_mcp_servers),
    SlashCommand(
        "tasks", "/tasks", "show or hide the background tasks", platform_actions.toggle_tasks, now=True
    ),
    SlashCommand(
        "config",
        "/config [PREFIX]",
        "show the settings and where they are from",
        platform_actions.show_config,
    ),
    SlashCommand(
        "theme",
        "/theme [NAME]",
        "choose the colours: dark, light or none",
        input_actions.choose_theme,
        now=True,
    ),
    SlashCommand("exit", "/exit", "leave", command_actions.leave),
    SlashCommand("quit", "/quit", "", command_actions.leave),
)
"""Every command, in the order of ``/help``; those without a help text are not listed."""

NAMES = (*(command.name for command in COMMANDS), *AGENT_COMMANDS)


def is_immediate(line: str) -> bool:
    """Report whether a line is a command that must not wait behind messages being handed in."""
    try:
        found = parse(line)
    except UnknownCommand:
        return False
    return isinstance(found, CommandCall) and found.command.now
