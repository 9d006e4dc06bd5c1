"""The sample channel: answers files in a folder. Put your own service in its place."""

from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

import anyio
import trunkline
from trunkline.api.channel import Channel, Letter, LetterChannel

PAUSE = 0.2
"""Seconds between two looks."""


class SampleChannel(LetterChannel):
    """Takes NAME.in and writes NAME.out."""

    name = "sample"
    shows = "Plain text: Markdown is not drawn."

    def __init__(self, folder: Path) -> None:
        super().__init__(notes=folder / "conversations.json")
        self._folder = folder

    async def letters(self) -> AsyncGenerator[Letter, None]:
        """What people have written and was not answered yet."""
        self._folder.mkdir(parents=True, exist_ok=True)
        while True:
            for file in sorted(self._folder.glob("*.in")):
                if text := file.read_text():
                    name = f"{file.name} {file.stat().st_mtime_ns}"
                    yield Letter(name, text, origin=file)
            await anyio.sleep(PAUSE)

    async def show(self, letter: Letter, text: str, *, done: bool) -> None:
        """Write the answer; at its end the letter is out of the way."""
        assert isinstance(letter.origin, Path)
        letter.origin.with_suffix(".out").write_text(text)
        if done:
            letter.origin.unlink()

    async def tell_owner(self, text: str) -> None:
        """Calls that wait for a decision, whichever channel began their turns."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "approvals.out").open("a") as file:
            file.write(f"{text}\n\n")

    def is_owner(self, letter: Letter) -> bool:
        """Who can write into this folder is its owner. Where others can write too, ask who wrote."""
        return True


@trunkline.hookimpl
def trunkline_channels(
    settings: trunkline.PluginSettings,
) -> Iterable[Channel]:
    """What this plugin adds."""
    return [SampleChannel(settings.home / "sample")]
