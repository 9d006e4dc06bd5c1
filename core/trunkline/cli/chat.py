"""``trunkline chat``: runs the terminal's channel, on the running platform or on one in this process."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.completion_types import ConversationName

if TYPE_CHECKING:
    import anyio

    from trunkline.config import Config
    from trunkline.contracts.channels.foreground_channel import ForegroundChannel, TerminalSession
    from trunkline.contracts.sentences.sentences import Sentences

LANGUAGE_SECONDS = 1.0
"""Seconds to wait for the language that the owner prefers."""

EXAMPLES = """
trunkline chat
trunkline chat --block garden
trunkline chat --conversation last
trunkline chat --resume
trunkline chat --plain
trunkline chat --conversation conv_01J9ZQ6T4M3W5N8R2K7V0XYB1D
echo "What did I plan for today?" | trunkline chat
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--block", help="The block in which a new conversation begins.")
@click.option("--conversation", type=ConversationName(),
              help='The conversation to continue, by id or number; "last" is the one answered last.')  # fmt: skip
@click.option("--resume", is_flag=True, help="First choose the conversation to continue from a list.")
@click.option("--plain", is_flag=True,
              help="Print lines only, without drawing or moving the cursor: for screen readers.")  # fmt: skip
@click.option("--channel", default="terminal", show_default=True, help="The channel that uses this terminal.")
def command(block: str | None, conversation: str | None, resume: bool, plain: bool, channel: str) -> int:
    """Talk with an agent in this terminal.

    The command uses the platform that runs on this home. If none runs, it starts one in this process until you leave.
    From a pipe, each line is one message. The exit status is 1 when a turn failed, 3 when one waits for a decision, 130
    after Ctrl-C.
    """
    from trunkline.cli.aio import run
    from trunkline.contracts.channels.foreground_channel import TerminalSession

    session = TerminalSession(block, conversation, resume=resume and conversation is None, plain=plain)
    return run(run_chat, session, channel, at_terminal=True)


async def run_chat(session: "TerminalSession", name: str) -> int:
    """Talk in this terminal by the channel ``name``, and return the exit status."""
    from dataclasses import replace
    from functools import partial

    import anyio

    from trunkline.cli.block_mode import describe_mode
    from trunkline.cli.command_process import run_own_command
    from trunkline.cli.log_file import log_to_file
    from trunkline.cli.references import resolve_conversation
    from trunkline.cli.trace import draw_trace
    from trunkline.config import load_config
    from trunkline.contracts.gateway.client import GatewayClient
    from trunkline.runtime.platform_connection import connect_to_platform
    from trunkline.workers import KINDS, load_worker
    from trunkline.workers.channels.preference_reader import PreferenceReader

    config = load_config()
    status = 128 + 15
    with log_to_file(config, "chat"):
        channel, sentences = _foreground(config, name)
        async with (
            connect_to_platform(config, load_worker, name="chat", kinds=KINDS) as bus,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(_leave_on_signal, tasks.cancel_scope)
            await PreferenceReader(bus, channel.name, sentences, first=LANGUAGE_SECONDS)()
            gateway = GatewayClient(bus, channel.name, shows=channel.shows, sentences=sentences)
            conversation = await resolve_conversation(gateway, session.conversation, session.block)
            at_bus = replace(
                session,
                conversation=conversation,
                trace=partial(draw_trace, bus),
                run_command=run_own_command,
                mode=partial(describe_mode, bus),
            )
            status = await channel.attend(gateway, at_bus)
            tasks.cancel_scope.cancel()
    return status


def _foreground(config: "Config", name: str) -> "tuple[ForegroundChannel, Sentences]":
    """Return the channel for this terminal, and the sentences. Raises PluginError when no plugin provides it."""
    from functools import partial

    from trunkline.contracts.channels.foreground_channel import ForegroundChannel
    from trunkline.errors import PluginError
    from trunkline.plugins import Plugins

    plugins = Plugins.load(config)
    found = {
        owned.item.name: owned.item
        for owned in plugins.channels()
        if isinstance(owned.item, ForegroundChannel)
    }
    if name not in found:
        raise PluginError(
            f"There is no channel {name!r} that supports a terminal.",
            hint=f"There are: {', '.join(found)}."
            if found
            else "Install trunkline-terminal; see `trunkline doctor`.",
        )
    channel = found[name]
    channel.render = partial(plugins.render, channel=name)
    return channel, plugins.sentences()


async def _leave_on_signal(scope: "anyio.CancelScope") -> None:
    """Cancel the scope when the terminal closes or the process receives a signal to end."""
    import signal

    import anyio

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as received:
        async for _ in received:
            scope.cancel()
            return
