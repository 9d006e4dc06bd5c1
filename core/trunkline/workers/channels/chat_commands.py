"""The commands that a person can give in a chat. Each returns what to say. The same in every chat service."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

import msgspec

from trunkline._util.local_time import to_local_time
from trunkline.contracts.channels.channel import Gateway
from trunkline.contracts.conversations.messages import ListConversations, utc_now
from trunkline.contracts.costs.budget_text import format_amount
from trunkline.contracts.costs.report_messages import CostSum
from trunkline.contracts.sentences.sentences import Sentences
from trunkline.errors import TrunklineError, Unavailable
from trunkline.workers.channels.approval_text import (
    decision_news,
    parse_decision,
    submit_decision,
    waiting_approval,
)
from trunkline.workers.channels.attached_chats import AttachedChats
from trunkline.workers.channels.chat_message import ChatMessage
from trunkline.workers.channels.chats import Chats, ChatState
from trunkline.workers.channels.conversation_lookup import conversation_found
from trunkline.workers.channels.model_command import describe_answerer, run_model_command
from trunkline_bus import RemoteFault

CHAT_COMMANDS = (
    "new", "block", "model", "status", "stop", "approve", "deny", "cost", "attach", "detach", "help",
)  # fmt: skip
"""The commands that a menu shows."""

LISTED = 8
"""The number of conversations that /attach lists."""

_COMMAND = re.compile(r"/(?P<name>[a-z]+)(?:\s+(?P<words>.*))?", re.IGNORECASE | re.DOTALL)

COST_SPAN = timedelta(days=90)
"""The time for which the costs of a conversation are summed."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A command in a chat."""

    gateway: Gateway
    chats: Chats
    attached: AttachedChats
    message: ChatMessage
    state: ChatState

    @property
    def chat(self) -> str:
        return self.message.chat

    @property
    def words(self) -> str:
        return self.message.text

    @property
    def say(self) -> Sentences:
        return self.gateway.sentences

    async def remember(self, **changes: object) -> None:
        state = msgspec.structs.replace(self.state, **changes)
        await self.chats.put(self.chat, state)


def command_menu(say: Sentences) -> dict[str, str]:
    """Return the commands that a menu shows, with what each does. Raises nothing."""
    return {name: say(f"menu.{name}") for name in CHAT_COMMANDS}


def parse_chat_command(text: str) -> tuple[str, str]:
    """Return the name of the command in a message, and what follows it; for any other message "" and the text."""
    found = _COMMAND.fullmatch(text.strip())
    return (found["name"].lower(), (found["words"] or "").strip()) if found else ("", text)


async def run_chat_command(
    gateway: Gateway, chats: Chats, attached: AttachedChats, message: ChatMessage
) -> str:
    """Carry out a command of the owner, and return what to say. Raises Unavailable if no gateway answers."""
    run = _RUN.get(message.command)
    if run is None:
        return gateway.sentences("command.unknown", command=message.command)
    try:
        return await run(_Call(gateway, chats, attached, message, await chats.get(message.chat)))
    except RemoteFault as fault:
        return gateway.sentences.translate(fault.message)


async def decide_by_words(gateway: Gateway, words: str) -> str | None:
    """Carry out a decision about a call, and return what to say; None if the words are no decision."""
    say = gateway.sentences
    verdict = parse_decision(words, short=True, say=say)
    if verdict is None:
        return None
    try:
        approval = await waiting_approval(gateway, verdict.id)
        if approval is None:
            return say("decision.unknown", id=verdict.id)
        await submit_decision(gateway, approval, verdict)
    except RemoteFault as fault:
        return say.translate(fault.message)
    if approval.detail.is_question:
        return say("decision.answered" if verdict.allow else "decision.unanswered")
    return decision_news(approval, verdict, say)


async def _help(call: _Call) -> str:
    lines = [f"/{name} - {text}" for name, text in command_menu(call.say).items()]
    return "\n".join([call.say("command.help"), "", *lines])


async def _new(call: _Call) -> str:
    await call.attached.detach(call.chat)
    await call.remember(conversation=None, turn="")
    return call.say("command.new")


async def _block(call: _Call) -> str:
    names = [block.name for block in await call.gateway.blocks()]
    wanted = call.words
    if not wanted:
        current = call.state.block or call.say("block.default")
        return call.say("block.here", block=current, blocks=", ".join(names))
    if wanted not in names:
        return call.say("block.missing", block=wanted, blocks=", ".join(names))
    await call.attached.detach(call.chat)
    await call.remember(block=wanted, conversation=None, turn="")
    return call.say("block.chosen", block=wanted)


async def _model(call: _Call) -> str:
    if call.state.conversation is None:
        return call.say("command.none")
    return await run_model_command(call.gateway, call.state.conversation, call.words)


async def _status(call: _Call) -> str:
    try:
        answerer = await call.gateway.answerer(call.state.block, conversation=call.state.conversation)
        lines = [describe_answerer(answerer, call.say)]
    except Unavailable as unavailable:
        lines = [unavailable.sentence]
    waiting = await call.gateway.waiting()
    if call.state.turn:
        turn = await call.gateway.turn(call.state.turn)
        lines.append(call.say(f"status.turn.{turn.status}", block=turn.block))
    lines.append(call.say("status.waiting", count=len(waiting)))
    return "\n".join(lines)


async def _stop(call: _Call) -> str:
    if not call.state.turn:
        return call.say("stop.nothing")
    if (await call.gateway.turn(call.state.turn)).status == "finished":
        return call.say("stop.nothing")
    await call.gateway.cancel(call.state.turn)
    return call.say("stop.done")


async def _decide(call: _Call) -> str:
    said = await decide_by_words(call.gateway, f"{call.message.command} {call.words}")
    return said or call.say("decision.how", command=call.message.command)


async def _cost(call: _Call) -> str:
    now = utc_now()
    today = to_local_time(now).replace(hour=0, minute=0, second=0, microsecond=0)
    lines: list[str] = []
    if call.state.conversation is not None:
        spent = await call.gateway.costs(now - COST_SPAN, conversation=call.state.conversation)
        lines.append(call.say("cost.conversation", sum=_describe_costs(spent.total, call.say)))
    spent = await call.gateway.costs(today)
    lines.append(call.say("cost.today", sum=_describe_costs(spent.total, call.say)))
    if spent.unpriced:
        lines.append(call.say("cost.unpriced", models=", ".join(spent.unpriced)))
    return "\n".join(lines)


def _describe_costs(total: CostSum, say: Sentences) -> str:
    """Return a sum in words, such as ``$0.0123 for 4 requests (12,000 tokens in, 800 out)``."""
    return say(
        "cost.sum.one" if total.requests == 1 else "cost.sum",
        amount=format_amount("spend", total.cost),
        count=total.requests,
        input=f"{total.usage.input_tokens:,}",
        output=f"{total.usage.output_tokens:,}",
    )


async def _attach(call: _Call) -> str:
    """Attach the chat to the named conversation, or to the one that it is in."""
    shown = await call.attached.attached_to(call.chat)
    if not call.words and (call.state.conversation is None or shown is not None):
        return await _list_conversations(call, shown)
    try:
        conversation = await conversation_found(call.gateway, call.words or call.state.conversation or "")
    except Unavailable:
        raise
    except TrunklineError as error:
        return f"{error.sentence} {error.hint}"
    message = call.message
    summary = await call.attached.attach(
        call.chat, conversation, place=message.place, details=message.details
    )
    await call.remember(conversation=conversation, block=summary.block)
    return call.say("attach.done", conversation=summary.title or summary.id, block=summary.block)


async def _list_conversations(call: _Call, shown: str | None) -> str:
    untitled = call.say("attach.untitled")
    page = await call.gateway.conversations(ListConversations(limit=LISTED))
    lines = [f"/attach {one.id}\n{one.title or untitled}" for one in page.conversations]
    begin = call.say("attach.shown", conversation=shown) if shown else call.say("command.none")
    return "\n\n".join([begin, *lines])


async def _detach(call: _Call) -> str:
    if not await call.attached.detach(call.chat):
        return call.say("detach.nothing")
    return call.say("detach.done")


_RUN: dict[str, Callable[[_Call], Awaitable[str]]] = {
    "start": _help, "help": _help, "new": _new, "block": _block, "model": _model, "status": _status, "stop": _stop,
    "approve": _decide, "deny": _decide, "answer": _decide, "cost": _cost,
    "attach": _attach, "detach": _detach,
}  # fmt: skip
