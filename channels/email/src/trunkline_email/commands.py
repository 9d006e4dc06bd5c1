"""The commands: a mail of one line that begins with a slash. Each returns what to say."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trunkline import RemoteFault, Unavailable
from trunkline.api.channel import ChatState, Gateway, describe_answerer, run_model_command

COMMANDS = {
    "model": "show or choose the model of this thread: /model NAME",
    "status": "who answers in this thread, and what waits",
    "stop": "stop the running answer of this thread",
    "cost": "what the last answer of this thread used",
    "help": "list the commands",
}

NO_CONVERSATION = (
    "There is no conversation in this thread yet. Send a message first, and reply to the answer."
)


@dataclass(frozen=True, slots=True)
class _Command:
    """A command in a thread."""

    gateway: Gateway
    state: ChatState
    argument: str


def parse_command(text: str) -> tuple[str, str] | None:
    """Return the name of a command and what follows it; None for every other mail."""
    line = text.strip()
    if not line.startswith("/") or "\n" in line:
        return None
    name, _, argument = line[1:].partition(" ")
    return (name.lower(), argument.strip()) if name.isalpha() else None


async def run_command(gateway: Gateway, state: ChatState, name: str, argument: str) -> str:
    """Carry out a command of the owner, and return what to say. Raises Unavailable if no gateway answers."""
    run = _RUN.get(name)
    if run is None:
        return f"There is no command /{name}. /help lists the commands."
    try:
        return await run(_Command(gateway, state, argument))
    except RemoteFault as fault:
        return fault.message


async def _help(call: _Command) -> str:
    lines = [f"* `/{name}`: {text}" for name, text in COMMANDS.items()]
    begin = "Write a mail, and the agent answers. A new mail begins a conversation, a reply continues it."
    return "\n".join([begin, "", "A mail of one line that begins with a slash is a command:", "", *lines])


async def _model(call: _Command) -> str:
    if call.state.conversation is None:
        return NO_CONVERSATION
    return await run_model_command(call.gateway, call.state.conversation, call.argument)


async def _status(call: _Command) -> str:
    try:
        answerer = await call.gateway.answerer(call.state.block, conversation=call.state.conversation)
        lines = [describe_answerer(answerer)]
    except Unavailable as unavailable:
        lines = [unavailable.sentence]
    if call.state.turn:
        turn = await call.gateway.turn(call.state.turn)
        lines.append(f"Block {turn.block}; the last answer: {turn.status}.")
    lines.append(f"Calls that wait for a decision: {len(await call.gateway.waiting())}.")
    return "\n\n".join(lines)


async def _stop(call: _Command) -> str:
    if not call.state.turn or (await call.gateway.turn(call.state.turn)).status == "finished":
        return "Nothing runs in this thread."
    await call.gateway.cancel(call.state.turn)
    return "Stopping."


async def _cost(call: _Command) -> str:
    if not call.state.turn:
        return NO_CONVERSATION
    usage = (await call.gateway.turn(call.state.turn)).usage
    return (
        f"The last answer used {usage.input_tokens} tokens of input and {usage.output_tokens} of output. "
        "`trunkline costs` shows prices."
    )


_RUN: dict[str, Callable[[_Command], Awaitable[str]]] = {
    "help": _help, "model": _model, "status": _status, "stop": _stop, "cost": _cost,
}  # fmt: skip
