"""The actions of the slash commands for the input, the queue and the screen."""

from typing import TYPE_CHECKING

from trunkline import TrunklineError
from trunkline_terminal import text_format
from trunkline_terminal.command_actions import begin_new
from trunkline_terminal.input_files import clipboard_picture
from trunkline_terminal.model_parameters import describe_parameters, read_parameters
from trunkline_terminal.theme import THEMES
from trunkline_terminal.transcript_search import find_in_messages

if TYPE_CHECKING:
    from trunkline_terminal.chat_session import ChatSession


async def clear_screen(session: "ChatSession", rest: str) -> None:
    """``/clear``"""
    session.screen.clear()
    await begin_new(session, rest)


async def find_words(session: "ChatSession", rest: str) -> None:
    """``/find WORDS``"""
    if not rest:
        raise TrunklineError("Give the words to find: /find WORDS.")
    messages = session.place.loaded
    if session.place.conversation:
        messages = (*messages, *(await session.view(session.place.conversation, include_tools=True)).messages)
    if not messages:
        raise TrunklineError("There is no conversation yet: send a message first.")
    session.screen.note(find_in_messages(rest, messages), "plain")


async def set_parameters(session: "ChatSession", rest: str) -> None:
    """``/params [KEY=VALUE ...|default]``"""
    if rest == "default":
        session.parameters = {}
    elif rest:
        session.parameters = {**session.parameters, **read_parameters(rest)}
    session.screen.note(describe_parameters(session.parameters), "plain")


async def list_queue(session: "ChatSession", rest: str) -> None:
    """``/queue``"""
    lines = [
        f"{number}  {text_format.shorten(text, 100)}" for number, text in enumerate(session.queue.texts(), 1)
    ]
    session.screen.note("\n".join(lines) or "No message waits.", "plain")


async def edit_queued(session: "ChatSession", rest: str) -> None:
    """``/edit [N]``"""
    session.screen.edit(await session.queue.take_back(rest))


async def drop_queued(session: "ChatSession", rest: str) -> None:
    """``/drop [N]``"""
    text = await session.queue.take_back(rest)
    session.screen.note(f"Cancelled before its turn: {text_format.shorten(text, 60)}")


async def paste_picture(session: "ChatSession", rest: str) -> None:
    """``/paste``"""
    session.screen.insert(session.files.add_picture(await clipboard_picture()))


async def choose_theme(session: "ChatSession", rest: str) -> None:
    """``/theme [NAME]``"""
    if rest not in THEMES:
        known = ", ".join(THEMES)
        if rest:
            raise TrunklineError(f"There is no theme {rest!r}.", hint=f"There are: {known}.")
        session.screen.note(f"The themes are {known}: /theme NAME.", "plain")
        return
    kept = session.screen.theme(THEMES[rest])
    session.screen.note(f"The theme is {rest}." if kept else f"The theme is {rest}, for this session.")
