"""The actions of the slash commands for blocks, memory, settings and background tasks.

What the command line shows already comes from it: the same words in a shell and in a chat.
"""

from typing import TYPE_CHECKING

from trunkline import TrunklineError
from trunkline.api.memory import block_folder
from trunkline_terminal.screen import Prompt

if TYPE_CHECKING:
    from trunkline_terminal.chat_session import ChatSession

CURATED = "MEMORY.md"
"""The file of memory with what every conversation needs."""

PLAN_SWITCHES = {"on": "--plan", "off": "--no-plan"}

CONFIRM: Prompt[bool] = Prompt(
    "y/n", "y/n", lambda line: {"y": True, "yes": True, "n": False, "no": False}.get(line.strip().lower()),
    "Answer y or n",
)  # fmt: skip


async def run_shown(session: "ChatSession", *arguments: str) -> None:
    """Run a command of ``trunkline`` and show what it prints. Raises TrunklineError if it fails."""
    session.screen.note(await session.run_command(*arguments) or "Nothing.", "plain")


async def show_config(session: "ChatSession", rest: str) -> None:
    """``/config [PREFIX]``"""
    await run_shown(session, "config", *rest.split()[:1])


async def list_mcp_servers(session: "ChatSession", rest: str) -> None:
    """``/mcp``"""
    await run_shown(session, "mcp", "list")


async def show_skills(session: "ChatSession", rest: str) -> None:
    """``/skills [NAME]``: the agent's own tools list them, with those that cannot be used."""
    await session.send(f"/tool use_skill name={rest.split()[0]}" if rest else "/tool list_skills")


async def show_memory(session: "ChatSession", rest: str) -> None:
    """``/memory [FILE|clear]``"""
    if rest == "clear":
        await _clear_memory(session)
    elif rest:
        await run_shown(session, "memory", "show", rest)
    else:
        await run_shown(session, "memory", "show", CURATED)
        await run_shown(session, "memory", "list", block_folder(await session.current_block()))


async def _clear_memory(session: "ChatSession") -> None:
    """Have the agent delete the file, so that permissions and approvals hold as for every deletion."""
    question = f"Delete {CURATED}, which every conversation knows? The history of memory keeps it."
    if await session.screen.ask(question, CONFIRM):
        await session.send(f"/tool memory_delete path=/{CURATED}")
    else:
        session.screen.note("Nothing was deleted.")


async def set_plan_mode(session: "ChatSession", rest: str) -> None:
    """``/plan [on|off]``"""
    block = await session.current_block()
    if rest:
        if rest not in PLAN_SWITCHES:
            raise TrunklineError("Say /plan, /plan on or /plan off.")
        await session.run_command("permissions", block, PLAN_SWITCHES[rest])
    await session.state.load_mode()
    session.show_status()
    planning = session.state.mode == "plan mode"
    words = (
        f"The agent of {block} only reads and plans."
        if planning
        else f"The agent of {block} is not in plan mode."
    )
    if planning and rest == "off":
        words += " It planned by itself: it ends when you approve its plan, or that it stops."
    session.screen.note(words)


async def create_block(session: "ChatSession", rest: str) -> None:
    """``/create-block NAME [TEXT]``"""
    name, _, message = rest.partition(" ")
    if not name:
        raise TrunklineError("Name the new block: /create-block NAME [TEXT].", hint="/blocks lists them.")
    await session.run_command("blocks", "create", "--", name)
    await session.enter_block(name)
    session.screen.note(f"The block {name} is there, and you are in it.")
    if message.strip():
        await session.send(message.strip())


async def toggle_tasks(session: "ChatSession", rest: str) -> None:
    """``/tasks``: opens or closes the pane. Where there is none, the tasks are listed."""
    if not await session.tasks.toggle():
        session.screen.note("\n".join(await session.tasks.lines()), "plain")
