"""The keys of the interactive terminal. Each calls a method of the screen; what it does is not decided here."""

from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from trunkline_terminal.choice_list import Picker
from trunkline_terminal.slash_completer import complete_at_once


class KeyTarget(Protocol):
    """The screen, as the keys see it."""

    @property
    def picker(self) -> Picker | None:
        """The open list."""
        ...

    def enter(self) -> None:
        """Enter, where no completion is chosen."""
        ...

    def interrupt(self) -> None:
        """Ctrl-C."""
        ...

    def leave(self) -> None:
        """Ctrl-D at an empty input."""
        ...

    def search_history(self) -> None:
        """Ctrl-R."""
        ...

    def paste(self, text: str) -> None:
        """A text that was pasted in brackets."""
        ...

    def press(self, command: str) -> None:
        """A key that stands for a slash command, such as Ctrl-T for ``/tasks``."""
        ...


def build_keys(buffer: Buffer, target: KeyTarget) -> KeyBindings:
    """The bindings besides prompt_toolkit's own."""
    keys = KeyBindings()
    picking = Condition(lambda: target.picker is not None)
    _bind_editing(keys, buffer, target, picking)
    _bind_picker(keys, target, picking)

    @keys.add("c-c")
    @keys.add("<sigint>")
    def _interrupt(event: KeyPressEvent) -> None:
        target.interrupt()

    @keys.add("c-d", filter=Condition(lambda: not buffer.text) & ~picking)
    def _leave(event: KeyPressEvent) -> None:
        target.leave()

    @keys.add("c-r", filter=~picking)
    def _history(event: KeyPressEvent) -> None:
        target.search_history()

    for key, command in (("c-t", "/tasks"), ("c-v", "/paste"), ("c-s", "/steer")):
        _bind_command(keys, target, key, command, picking)

    @keys.add("escape", "up", filter=~picking)
    def _take_back(event: KeyPressEvent) -> None:
        target.press("/edit")

    return keys


def _bind_command(keys: KeyBindings, target: KeyTarget, key: str, command: str, picking: Condition) -> None:
    @keys.add(key, filter=~picking)
    def _press(event: KeyPressEvent) -> None:
        target.press(command)


def _bind_editing(keys: KeyBindings, buffer: Buffer, target: KeyTarget, picking: Condition) -> None:
    @keys.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            buffer.complete_state = None
        else:
            target.enter()

    @keys.add("tab", filter=~picking)
    def _tab(event: KeyPressEvent) -> None:
        if buffer.complete_state is not None:
            buffer.complete_next()
        else:
            complete_at_once(buffer)

    @keys.add("escape", "enter", filter=~picking)
    @keys.add("c-j", filter=~picking)
    def _newline(event: KeyPressEvent) -> None:
        buffer.newline(copy_margin=False)

    @keys.add(Keys.BracketedPaste)
    def _paste(event: KeyPressEvent) -> None:
        target.paste(event.data)


def _bind_picker(keys: KeyBindings, target: KeyTarget, picking: Condition) -> None:
    for key, rows in (("up", -1), ("c-p", -1), ("down", 1), ("c-n", 1), ("pageup", -10), ("pagedown", 10)):
        _bind_move(keys, target, key, rows, picking)

    @keys.add("escape", filter=picking, eager=True)
    @keys.add("c-g", filter=picking)
    def _close(event: KeyPressEvent) -> None:
        if target.picker is not None:
            target.picker.close()


def _bind_move(keys: KeyBindings, target: KeyTarget, key: str, rows: int, picking: Condition) -> None:
    @keys.add(key, filter=picking)
    def _move(event: KeyPressEvent) -> None:
        if target.picker is not None:
            target.picker.move(rows)
