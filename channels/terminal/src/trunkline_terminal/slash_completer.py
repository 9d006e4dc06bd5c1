"""Completion of slash commands, names of blocks and models, and file names."""

from collections.abc import Callable, Iterable, Sequence

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


class SlashCompleter(Completer):
    """Completes a line that begins with a slash; ``blocks`` and ``models`` give the names known now."""

    def __init__(self, blocks: Callable[[], Sequence[str]], models: Callable[[], Sequence[str]]) -> None:
        self._blocks = blocks
        self._models = models
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text
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
        elif name in ("save", "load"):
            yield from self._paths.get_completions(Document(rest), complete_event)

    def _commands(self, prefix: str) -> Iterable[Completion]:
        for command in COMMANDS:
            if command.help and command.name.startswith(prefix):
                yield Completion(command.name, -len(prefix), display=command.usage, display_meta=command.help)


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
