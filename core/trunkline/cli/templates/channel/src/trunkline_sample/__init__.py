"""The sample channel: answers files in a folder. Put your own service in its place."""

from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

import anyio
import trunkline
from trunkline.api.channel import Channel, Letter, LetterChannel

PAUSE = 0.2
"""Seconds between two reads of the folder."""


class SampleChannel(LetterChannel):
    """Reads NAME.in and writes NAME.out."""

    name = "sample"
    shows = "Plain text: Markdown is not drawn."

    def __init__(self, folder: Path) -> None:
        super().__init__(notes=folder / "conversations.json")
        self._folder = folder

    async def letters(self) -> AsyncGenerator[Letter, None]:
        """Yield the messages that were not answered yet."""
        self._folder.mkdir(parents=True, exist_ok=True)
        while True:
            for file in sorted(self._folder.glob("*.in")):
                if text := file.read_text():
                    name = f"{file.name} {file.stat().st_mtime_ns}"
                    yield Letter(name, text, origin=file)
            await anyio.sleep(PAUSE)

    async def show(self, letter: Letter, text: str, *, done: bool) -> None:
        """Write the answer so far. When it is complete, delete the letter."""
        assert isinstance(letter.origin, Path)
        letter.origin.with_suffix(".out").write_text(text)
        if done:
            letter.origin.unlink()

    async def tell_owner(self, text: str) -> None:
        """Write what the owner must know, such as calls that wait for approval."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "approvals.out").open("a") as file:
            file.write(f"{text}\n\n")

    def is_owner(self, letter: Letter) -> bool:
        """Whoever can write into this folder is the owner. Where others can write, check the sender."""
        return True


@trunkline.hookimpl
def trunkline_channels(
    settings: trunkline.PluginSettings,
) -> Iterable[Channel]:
    """Return the channels of this plugin."""
    return [SampleChannel(settings.home / "sample")]
