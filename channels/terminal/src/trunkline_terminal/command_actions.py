"""The actions of the slash commands for conversations, turns and approvals."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from trunkline import TrunklineError
from trunkline.api.channel import (
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

MAX_LISTED = 15
"""The largest number of conversations in a list."""

MAX_OFFERED = 50
"""The largest number of conversations that a person picks from."""


async def begin_new(session: "ChatSession", rest: str) -> None:
    session.place = type(session.place)(session.place.block)
    await session.state.load()
    session.screen.note("A new conversation begins with your next message.")


async def list_blocks(session: "ChatSession", rest: str) -> None:
    lines = []
    for block in await session.refresh_blocks():
        mark = "*" if block.name == session.place.block else " "
        about = text_format.shorten(block.config.description, 60)
        paused = "" if block.config.enabled else "  (off)"
        lines.append(f"{mark} {block.name}  {block.pulse.status.lower()}{paused}  {about}".rstrip())
    session.screen.note("\n".join(lines) or "There are no blocks.", "plain")


async def switch_block(session: "ChatSession", rest: str) -> None:
    name, _, message = rest.partition(" ")
    if not name:
        raise TrunklineError("Name a block: /switch BLOCK.", hint="/blocks lists them.")
    await session.enter_block(name)
    session.screen.note(f"You are in block {name}. A new conversation begins with your next message.")
    if message.strip():
        await session.send(message.strip())


async def show_status(session: "ChatSession", rest: str) -> None:
    place, turns = session.place, session.turns
    lines = [f"block         {place.block or '(chosen by the gateway)'}"]
    for block in await session.refresh_blocks():
        if block.name == place.block:
            lines.append(f"state         {block.pulse.status.lower()}")
    await session.state.load_answerer()
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


async def choose_model(session: "ChatSession", rest: str) -> None:
    if rest:
        await session.choose_model(wanted_model(rest))
        session.screen.note(describe_answerer(session.answerer, session.gateway.sentences))
        return
    await session.state.load_answerer()
    models = await session.load_models()
    session.screen.note(describe_models(session.answerer, models, session.gateway.sentences), "plain")


async def cancel_turn(session: "ChatSession", rest: str) -> None:
    if await session.interrupt() == "nothing":
        session.screen.note("No turn is running.")


async def steer_turn(session: "ChatSession", rest: str) -> None:
    if not rest:
        raise TrunklineError("Give a text for the running turn: /steer TEXT.")
    if not await session.steer(rest):
        raise TrunklineError("No turn is running.", hint="Send it as a message.")


async def list_approvals(session: "ChatSession", rest: str) -> None:
    waiting = await session.outage.retry(session.gateway.waiting)
    say = session.gateway.sentences
    news = [approval_news(approval, before="/", say=say) for approval in waiting]
    session.screen.note("\n\n".join(news) or "Nothing waits for a decision.", "plain")


async def approve_call(session: "ChatSession", rest: str) -> None:
    verdict = parse_decision(f"approve {rest}", short=True, say=session.gateway.sentences)
    if verdict is None:
        raise TrunklineError(
            "Name an approval: /approve ID, or /approve ID conversation, or /approve ID always."
        )
    await session.decide(verdict)


async def deny_call(session: "ChatSession", rest: str) -> None:
    verdict = parse_decision(f"deny {rest}", short=True, say=session.gateway.sentences)
    if verdict is None:
        raise TrunklineError("Name an approval: /deny ID.", hint="/approvals lists the open ones.")
    await session.decide(verdict)


async def answer_question(session: "ChatSession", rest: str) -> None:
    verdict = parse_decision(f"answer {rest}", short=True)
    if verdict is None:
        raise TrunklineError(
            "Name the question, then answer: /answer ID TEXT.", hint="/approvals lists the open ones."
        )
    await session.decide(verdict)


async def show_trace(session: "ChatSession", rest: str) -> None:
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


async def show_context(session: "ChatSession", rest: str) -> None:
    conversation = session.place.conversation
    if not conversation:
        raise TrunklineError("There is no conversation yet: send a message first.")
    view = await session.outage.retry(lambda: session.gateway.context(conversation, rest or None))
    session.screen.note(describe_context(view, history=False), "plain")


async def save_conversation(session: "ChatSession", rest: str) -> None:
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


async def load_conversation(session: "ChatSession", rest: str) -> None:
    path = saved_conversation.load_path(rest) if rest else await _picked_file(session)
    if path is None:
        session.screen.note("Nothing was loaded.")
        return
    messages = saved_conversation.load(path)
    session.place = type(session.place)(session.place.block, loaded=messages)
    session.show_status()
    session.screen.note(f"Loaded {len(messages)} messages from {path}. Your next message goes on from there.")


async def _picked_file(session: "ChatSession") -> Path | None:
    """The saved conversation that the person picks; the newest one where nobody can pick."""
    saved = saved_conversation.saved_files()
    if len(saved) < 2 or not session.screen.can_choose:
        return saved_conversation.load_path("")
    choices = [f"{path.name}  {format_local_time(at)}" for path, at in saved]
    picked = await session.screen.choose("Load which conversation?", choices)
    return None if picked is None else saved[picked][0]


async def show_result(session: "ChatSession", rest: str) -> None:
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


async def list_conversations(session: "ChatSession", rest: str) -> None:
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


async def resume_picked(session: "ChatSession", rest: str) -> None:
    query = ListConversations(search=rest or None, limit=MAX_OFFERED)
    found = (await session.outage.retry(lambda: session.gateway.conversations(query))).conversations
    if not found:
        raise TrunklineError("There is no such conversation." if rest else "There is no conversation yet.")
    if not session.screen.can_choose:
        raise TrunklineError(
            "Nobody can be asked here which conversation to continue.", hint="/open NUMBER|ID names one."
        )
    choices = [f"{format_local_time(one.updated_at)}  {one.block}  {one.title or one.id}" for one in found]
    picked = await session.screen.choose("Continue which conversation?", choices)
    if picked is None:
        session.screen.note("You stay where you are.")
        return
    await _continue(session, found[picked].id)


async def _continue(session: "ChatSession", conversation: str) -> None:
    await session.resume(conversation)
    await session.state.load()
    session.screen.note(f"You are in: {session.place.title or session.place.conversation}")


async def open_conversation(session: "ChatSession", rest: str) -> None:
    if not rest and session.screen.can_choose:
        await resume_picked(session, rest)
        return
    if not rest:
        raise TrunklineError(
            "Name a conversation: /open NUMBER or /open ID.", hint="/conversations lists them."
        )
    is_number = rest.isascii() and rest.isdigit()
    if is_number and not 0 < int(rest) <= len(session.listed):
        raise TrunklineError(f"There is no number {rest} in the list.", hint="/conversations lists them.")
    if is_number:
        await _continue(session, session.listed[int(rest) - 1])
    else:
        await _continue(
            session, await session.outage.retry(lambda: conversation_found(session.gateway, rest))
        )


async def set_title(session: "ChatSession", rest: str) -> None:
    conversation = session.place.conversation
    if not conversation:
        raise TrunklineError("There is no conversation yet: send a message first.")
    if not rest:
        raise TrunklineError("Give a title: /title TEXT.")
    named = await session.outage.retry(lambda: session.gateway.rename_conversation(conversation, rest))
    session.place.title = named.title or ""
    session.show_status()
    session.screen.note(f"This conversation is called: {session.place.title}")


async def leave(session: "ChatSession", rest: str) -> bool:
    return False
