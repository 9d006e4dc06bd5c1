"""The slash commands: a table, the parser, and what each one does to a session."""

import difflib
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from trunkline import TrunklineError
from trunkline.api.channel import (
    DEFAULT_MODEL,
    approval_news,
    conversation_found,
    describe_answerer,
    describe_context,
    describe_models,
    format_result,
    parse_decision,
    wanted_model,
)
from trunkline.api.gateway import ListConversations
from trunkline.api.text import format_local_time, unwrap_tool_result
from trunkline_terminal import saved_conversation, text_format

if TYPE_CHECKING:
    from trunkline_terminal.chat_session import ChatSession

CommandAction = Callable[["ChatSession", str], Awaitable[bool | None]]

MAX_LISTED = 15
"""The largest number of conversations in a list."""

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


# What the commands do ----------------------------------------------------------------------------------------


async def _help(session: "ChatSession", rest: str) -> None:
    width = max(len(command.usage) for command in COMMANDS)
    lines = [f"{command.usage:<{width}}  {command.help}" for command in COMMANDS if command.help]
    session.screen.note("\n".join([*lines, "", *_KEYS]), "plain")


_KEYS = (
    "/tool NAME key=value runs a tool, whatever model answers; /tool lists them. //text sends /text.",
    "/compact [FOCUS] summarises the older messages for the model; /compact undo withdraws the summary.",
    "/rebirth [FOCUS] summarises all messages into memory.md of the block, and begins anew with it.",
    "Alt-Enter or Ctrl-J begins a new line. A message typed while a turn runs waits for it.",
    "Ctrl-C ends the running turn; a second one leaves. Ctrl-D leaves.",
)


async def _new(session: "ChatSession", rest: str) -> None:
    session.place = type(session.place)(session.place.block)
    await session.load_answerer()
    session.show_status()
    session.screen.note("A new conversation begins with your next message.")


async def _blocks(session: "ChatSession", rest: str) -> None:
    lines = []
    for block in await session.refresh_blocks():
        mark = "*" if block.name == session.place.block else " "
        about = text_format.shorten(block.config.description, 60)
        paused = "" if block.config.enabled else "  (off)"
        lines.append(f"{mark} {block.name}  {block.pulse.status.lower()}{paused}  {about}".rstrip())
    session.screen.note("\n".join(lines) or "There are no blocks.", "plain")


async def _switch(session: "ChatSession", rest: str) -> None:
    name, _, message = rest.partition(" ")
    if not name:
        raise TrunklineError("Name a block: /switch BLOCK.", hint="/blocks lists them.")
    await session.refresh_blocks()
    block = session.block_named(name)
    session.place = type(session.place)(block.name)
    await session.load_answerer()
    session.show_status()
    session.screen.note(f"You are in block {block.name}. A new conversation begins with your next message.")
    if message.strip():
        await session.send(message.strip())


async def _status(session: "ChatSession", rest: str) -> None:
    place, turns = session.place, session.turns
    lines = [f"block         {place.block or '(chosen by the gateway)'}"]
    for block in await session.refresh_blocks():
        if block.name == place.block:
            lines.append(f"state         {block.pulse.status.lower()}")
    await session.load_answerer()
    lines.append(f"model         {session.answerer.problem or session.answerer.label}{_chosen(session)}")
    if place.conversation:
        summary = (await session.view(place.conversation)).summary
        lines.append(f"conversation  {place.conversation} ({summary.message_count} messages)")
        lines += [f"title         {summary.title}"] if summary.title else []
    else:
        lines.append("conversation  a new one")
    running = turns.running
    if running is not None:
        state = await session.outage.retry(lambda: session.gateway.turn(running.followed.turn))
        lines.append(f"turn          {running.followed.turn} ({state.status}), {turns.count - 1} waiting")
    spent = text_format.format_usage(turns.usage)
    lines.append(f"tokens        {spent or 'none'} in this session")
    lines += [f"cost          {_cost(turns.cost)}"] if spent else []
    session.screen.note("\n".join(lines), "plain")


def _chosen(session: "ChatSession") -> str:
    return " (chosen for this conversation)" if session.answerer.chosen else ""


def _cost(cost: int | None) -> str:
    """Return the cost of a session that used tokens; None where no model has a price."""
    if cost is None:
        return "not known: no model has a price ([models] prices in trunkline.toml)"
    return f"{text_format.format_cost(cost) or '$0'} (models with a price)"


async def _model(session: "ChatSession", rest: str) -> None:
    if rest:
        await session.choose_model(wanted_model(rest))
        session.screen.note(describe_answerer(session.answerer))
        return
    await session.load_answerer()
    session.screen.note(describe_models(session.answerer, await session.load_models()), "plain")


async def _cancel(session: "ChatSession", rest: str) -> None:
    if await session.interrupt() == "nothing":
        session.screen.note("No turn is running.")


async def _steer(session: "ChatSession", rest: str) -> None:
    if not rest:
        raise TrunklineError("Give a text for the running turn: /steer TEXT.")
    if not await session.steer(rest):
        raise TrunklineError("No turn is running.", hint="Send it as a message.")


async def _approvals(session: "ChatSession", rest: str) -> None:
    waiting = await session.outage.retry(session.gateway.waiting)
    news = [approval_news(approval, before="/") for approval in waiting]
    session.screen.note("\n\n".join(news) or "Nothing waits for a decision.", "plain")


async def _approve(session: "ChatSession", rest: str) -> None:
    verdict = parse_decision(f"approve {rest}", short=True)
    if verdict is None:
        raise TrunklineError(
            "Name an approval: /approve ID, or /approve ID conversation, or /approve ID always."
        )
    await session.decide(verdict)


async def _deny(session: "ChatSession", rest: str) -> None:
    verdict = parse_decision(f"deny {rest}", short=True)
    if verdict is None:
        raise TrunklineError("Name an approval: /deny ID.", hint="/approvals lists the open ones.")
    await session.decide(verdict)


async def _answer(session: "ChatSession", rest: str) -> None:
    verdict = parse_decision(f"answer {rest}", short=True)
    if verdict is None:
        raise TrunklineError(
            "Name the question, then answer: /answer ID TEXT.", hint="/approvals lists the open ones."
        )
    await session.decide(verdict)


async def _trace(session: "ChatSession", rest: str) -> None:
    last = session.turns.last
    turn = rest or (last.turn if last else "")
    if not turn:
        raise TrunklineError("There is no turn to trace yet.", hint="/trace TURN shows any other.")
    if session.terminal_session.trace is not None:
        session.screen.note(await session.terminal_session.trace(turn), "plain")
        return
    view = await session.outage.retry(lambda: session.gateway.turn(turn))
    trace = text_format.trace_id(view.traceparent) or "unknown"
    session.screen.note(f"trace {trace}; `trunkline trace {turn}` draws it.", "plain")


async def _context(session: "ChatSession", rest: str) -> None:
    conversation = session.place.conversation
    if not conversation:
        raise TrunklineError("There is no conversation yet: send a message first.")
    view = await session.outage.retry(lambda: session.gateway.context(conversation, rest or None))
    session.screen.note(describe_context(view, history=False), "plain")


async def _save(session: "ChatSession", rest: str) -> None:
    place = session.place
    messages = place.loaded
    if place.conversation is not None:
        stored = (await session.view(place.conversation, include_tools=True)).messages
        known = {message.id for message in stored}
        messages = (*(message for message in messages if message.id not in known), *stored)
    if not messages:
        raise TrunklineError("There is nothing to save yet.")
    path = saved_conversation.save_path(rest, datetime.now())
    saved_conversation.save(messages, path)
    session.screen.note(f"Saved {len(messages)} messages to {path}.")


async def _load(session: "ChatSession", rest: str) -> None:
    path = saved_conversation.load_path(rest)
    messages = saved_conversation.load(path)
    session.place = type(session.place)(session.place.block, loaded=messages)
    session.show_status()
    session.screen.note(f"Loaded {len(messages)} messages from {path}. Your next message goes on from there.")


async def _show(session: "ChatSession", rest: str) -> None:
    results = session.turns.results
    if rest and not (rest.isascii() and rest.isdigit() and int(rest)):
        raise TrunklineError("Give a number: /show shows the last result, /show 2 the one before it.")
    number = int(rest or 1)
    if number > len(results):
        raise TrunklineError(
            "There are fewer tool results here." if results else "No tool has returned a result here yet."
        )
    label, output = results[-number]
    session.screen.note(
        f"{label}\n{format_result(unwrap_tool_result(output)).strip() or '(nothing)'}", "plain"
    )


async def _conversations(session: "ChatSession", rest: str) -> None:
    query = ListConversations(search=rest or None, limit=MAX_LISTED)
    found = (await session.outage.retry(lambda: session.gateway.conversations(query))).conversations
    session.listed = tuple(one.id for one in found)
    lines = [
        f"{number:>2}  {format_local_time(one.updated_at)}  {one.block}  "
        f"{text_format.shorten(one.title or one.id, 60)}"
        for number, one in enumerate(found, 1)
    ]
    session.screen.note(
        "\n".join([*lines, "/open NUMBER continues one."]) if lines else "There are none.", "plain"
    )


async def _open(session: "ChatSession", rest: str) -> None:
    if not rest:
        raise TrunklineError(
            "Name a conversation: /open NUMBER or /open ID.", hint="/conversations lists them."
        )
    is_number = rest.isascii() and rest.isdigit()
    if is_number and not 0 < int(rest) <= len(session.listed):
        raise TrunklineError(f"There is no number {rest} in the list.", hint="/conversations lists them.")
    if is_number:
        await session.resume(session.listed[int(rest) - 1])
    else:
        await session.resume(await session.outage.retry(lambda: conversation_found(session.gateway, rest)))
    session.show_status()
    session.screen.note(f"You are in: {session.place.title or session.place.conversation}")


async def _title(session: "ChatSession", rest: str) -> None:
    conversation = session.place.conversation
    if not conversation:
        raise TrunklineError("There is no conversation yet: send a message first.")
    if not rest:
        raise TrunklineError("Give a title: /title TEXT.")
    named = await session.outage.retry(lambda: session.gateway.rename_conversation(conversation, rest))
    session.place.title = named.title or ""
    session.show_status()
    session.screen.note(f"This conversation is called: {session.place.title}")


async def _exit(session: "ChatSession", rest: str) -> bool:
    return False


COMMANDS = (
    SlashCommand("help", "/help", "list the commands", _help),
    SlashCommand("new", "/new", "begin a new conversation", _new),
    SlashCommand("blocks", "/blocks", "list the blocks", _blocks),
    SlashCommand("switch", "/switch BLOCK [TEXT]", "go to another block, and send TEXT there", _switch),
    SlashCommand("conversations", "/conversations [WORDS]", "list conversations", _conversations),
    SlashCommand("open", "/open NUMBER|ID", "continue another conversation", _open),
    SlashCommand("title", "/title TEXT", "give this conversation a title", _title),
    SlashCommand("show", "/show [N]", "the last tool result in full, or the Nth last", _show, now=True),
    SlashCommand("status", "/status", "show block, conversation, turn, tokens and cost", _status),
    SlashCommand(
        "model", f"/model [NAME|{DEFAULT_MODEL}]", "show or choose the model of this conversation", _model
    ),
    SlashCommand("cancel", "/cancel", "end the running turn", _cancel, now=True),
    SlashCommand("steer", "/steer TEXT", "send a text to the running turn", _steer, now=True),
    SlashCommand(
        "approvals", "/approvals", "list the open approvals, here and elsewhere", _approvals, now=True
    ),
    SlashCommand(
        "approve", "/approve ID [SCOPE]", "allow it: once, conversation or always", _approve, now=True
    ),
    SlashCommand("deny", "/deny ID", "deny it", _deny, now=True),
    SlashCommand("answer", "/answer ID TEXT", "answer a question of an agent", _answer, now=True),
    SlashCommand("trace", "/trace [TURN]", "show the trace of the last turn", _trace),
    SlashCommand("context", "/context [TURN]", "show what the model saw, and its tokens", _context),
    SlashCommand("save", "/save [PATH]", "save the conversation as JSON", _save),
    SlashCommand("load", "/load [PATH]", "begin a new conversation from a saved one", _load),
    SlashCommand("exit", "/exit", "leave", _exit),
    SlashCommand("quit", "/quit", "", _exit),
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
