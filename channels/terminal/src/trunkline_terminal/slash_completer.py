"""Completion of slash commands, of names of blocks, models and themes, and of file names."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import (
    CompleteEvent,
    Completer,
    Completion,
    PathCompleter,
    get_common_complete_suffix,
)
from prompt_toolkit.document import Document

from trunkline.api.channel import DEFAULT_MODEL
from trunkline_terminal.commands import COMMANDS
from trunkline_terminal.file_mentions import TYPED, mention_of
from trunkline_terminal.file_search import FileFinder
from trunkline_terminal.theme import THEMES


class SlashCompleter(Completer):
    """Completes a line that begins with a slash, and the mention of a file before the cursor. ``blocks`` and ``models``
    give the names known now."""

    def __init__(self, blocks: Callable[[], Sequence[str]], models: Callable[[], Sequence[str]]) -> None:
        self._blocks = blocks
        self._models = models
        self._paths = PathCompleter(expanduser=True)
        self._files = FileFinder()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text
        mention = TYPED.search(document.text_before_cursor)
        if mention is not None:
            yield from self._mentions(
                mention[1] if mention[1] is not None else mention[2], mention[0], complete_event
            )
            return
        if not text.startswith("/") or "\n" in text:
            return
        name, space, rest = text[1:].partition(" ")
        if not space:
            yield from self._commands(name)
        elif name == "switch" and " " not in rest:
            yield from (Completion(block, -len(rest)) for block in self._blocks() if block.startswith(rest))
        elif name == "model":
            names = (DEFAULT_MODEL, *self._models())
            yield from (Completion(model, -len(rest)) for model in names if rest.lower() in model.lower())
        elif name == "theme":
            yield from (Completion(theme, -len(rest)) for theme in THEMES if theme.startswith(rest))
        elif name in ("save", "load"):
            yield from self._paths.get_completions(Document(rest), complete_event)

    def _mentions(self, typed: str, whole: str, event: CompleteEvent) -> Iterable[Completion]:
        """The files below the working folder; of a path that leads elsewhere, what is in its folder."""
        if typed.startswith(("/", "~", ".")):
            for found in self._paths.get_completions(Document(typed), event):
                path = typed + found.text
                folder = Path(path).expanduser().is_dir()
                mention = f"@{path}/" if folder and not re.search(r"\s", path) else mention_of(path)
                yield Completion(mention, -len(whole), display=found.display)
        else:
            for path in self._files.find(typed):
                yield Completion(mention_of(path), -len(whole), display=path)

    def _commands(self, prefix: str) -> Iterable[Completion]:
        for command in COMMANDS:
            if command.help and command.name.startswith(prefix):
                yield Completion(command.name, -len(prefix), display=command.usage, display_meta=command.help)


def is_completed_while_typing(document: Document) -> bool:
    """Report whether completions are offered without a Tab: of a command, and of a mention of a file."""
    return document.text.startswith("/") or TYPED.search(document.text_before_cursor) is not None


def complete_at_once(buffer: Buffer) -> None:
    """Complete what is typed as far as it is clear, and offer the rest.

    The menu that comes while typing is made in the background, and a Tab that is pressed meanwhile would be lost.
    """
    found = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
    common = get_common_complete_suffix(buffer.document, found)
    if len(found) == 1:
        buffer.apply_completion(found[0])
    elif common:
        buffer.insert_text(common)
    else:
        buffer.start_completion()
