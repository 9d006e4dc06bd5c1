"""The commands: a mail of one line that begins with a slash. Each returns what to say."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trunkline import RemoteFault, Unavailable
from trunkline.api.channel import ChatState, Gateway, Sentences, describe_answerer, run_model_command

COMMANDS = ("model", "status", "stop", "cost", "help")


@dataclass(frozen=True, slots=True)
class _Command:
    """A command in a thread."""

    gateway: Gateway
    state: ChatState
    argument: str

    @property
    def say(self) -> Sentences:
        return self.gateway.sentences


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
        return gateway.sentences("command.unknown", command=name)
    try:
        return await run(_Command(gateway, state, argument))
    except RemoteFault as fault:
        return gateway.sentences.translate(fault.message)


async def _help(call: _Command) -> str:
    lines = [f"* `/{name}`: {call.say(f'email.menu.{name}')}" for name in COMMANDS]
    return "\n".join([call.say("email.help"), "", call.say("email.commands"), "", *lines])


async def _model(call: _Command) -> str:
    if call.state.conversation is None:
        return call.say("email.none")
    return await run_model_command(call.gateway, call.state.conversation, call.argument)


async def _status(call: _Command) -> str:
    try:
        answerer = await call.gateway.answerer(call.state.block, conversation=call.state.conversation)
        lines = [describe_answerer(answerer, call.say)]
    except Unavailable as unavailable:
        lines = [unavailable.sentence]
    if call.state.turn:
        turn = await call.gateway.turn(call.state.turn)
        lines.append(call.say(f"status.turn.{turn.status}", block=turn.block))
    lines.append(call.say("status.waiting", count=len(await call.gateway.waiting())))
    return "\n\n".join(lines)


async def _stop(call: _Command) -> str:
    if not call.state.turn or (await call.gateway.turn(call.state.turn)).status == "finished":
        return call.say("email.nothing")
    await call.gateway.cancel(call.state.turn)
    return call.say("stop.done")


async def _cost(call: _Command) -> str:
    if not call.state.turn:
        return call.say("email.none")
    usage = (await call.gateway.turn(call.state.turn)).usage
    return call.say("email.cost", input=usage.input_tokens, output=usage.output_tokens)


_RUN: dict[str, Callable[[_Command], Awaitable[str]]] = {
    "help": _help, "model": _model, "status": _status, "stop": _stop, "cost": _cost,
}  # fmt: skip
